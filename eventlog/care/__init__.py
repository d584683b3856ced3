"""What an operator does with a log: looks at it, holds rows and lets them go, has them wait again, pauses outputs."""
