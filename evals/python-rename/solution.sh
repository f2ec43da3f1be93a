sed -i -E 's/\bget_usr\b/get_user/g' store.py app.py handlers.json MANUAL.md
