"""A shop: orders in SQLAlchemy on SQLite, and a leaderboard that is live in browsers.

POST /orders --> session --> COMMIT --> views --> web sockets --> rows move on the page

models.py     the tables of the file: customers and their orders
board.py      the live view over them: the best customers
live.py       a view and a browser: rows at first, then their changes
service.py    the routes
page.html     the page
"""
