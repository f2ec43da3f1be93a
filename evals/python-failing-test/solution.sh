sed -i 's/grams < most/grams <= most/; s|int(price \* 1.5 / 10) \* 10|-(-price * 3 // 20) * 10|' shipping.py
