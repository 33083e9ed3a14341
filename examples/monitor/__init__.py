"""A monitor: readings of sensors become alerts, which a person acknowledges on a page.

readings --> rules --> incidents --> notices --> outbox, each once, also across kill -9
                          ^             |
   acknowledgements ------+             +------> page: live by server-sent events

rows.py       the rows of all tables and views
rules.py      what raises and what ends an alert, as queries
monitor.py    the tables, the views, and everything that writes
outbox.py     the file of notices
sensors.py    simulated sensors, and a simulated person
service.py    the routes of the page
page.html, page.css, page.js    the page
"""
