"""`turngate doctor --host`: will another agent program ask Turngate?"""
