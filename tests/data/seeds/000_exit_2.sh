#!/bin/bash
echo "Error: Tests not run. Please run make test before stopping" >&2
exit 2
