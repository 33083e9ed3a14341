"""A shop: orders in SQLAlchemy on SQLite, and a leaderboard that browsers see change.

POST /orders --> session --> COMMIT --> views --> web sockets --> rows move on the page

models.py     what is in the file: customers and their orders
board.py      the live view over them: who has bought most
live.py       a view and a browser: rows at first, then how they change
service.py    the routes
page.html     the page
"""
