# Reads the verbose output of ctest, prints one line per test program and the output of those that
# failed, and appends "passed failed" in test cases to the file `counts`, and each failed program with the
# end of its output to the file `failures`.
#
# Cases come from the closing lines of cmocka and busted. A program without such lines is one case;
# one that failed although its cases passed (a crash, a sanitizer's report) adds a failed one.

/^[0-9]+: / {
    id = $1 + 0
    line = $0
    sub(/^[0-9]+: /, "", line)
    # What comes before is how ctest starts the test.
    if (line ~ /^Test timeout computed to be/) {
        lines[id] = 0
        next
    }
    # Keep the end of long output: that is where the failure is.
    lines[id]++
    text[id, lines[id]] = line
    if (line ~ /^\[  PASSED  \] [0-9]+ test/) {
        split(line, words, / +/)
        passed[id] += words[4]
        cases[id] = 1
    } else if (line ~ /^\[  FAILED  \] [0-9]+ test/) {
        split(line, words, / +/)
        failed[id] += words[4]
        cases[id] = 1
    } else if (line ~ /^[0-9]+ success(es)? \/ [0-9]+ failures? \/ [0-9]+ errors? \/ [0-9]+ pending/) {
        split(line, words, " ")
        passed[id] += words[1]
        failed[id] += words[4] + words[7]
        pending += words[10]
        cases[id] = 1
    }
    next
}

/^ *[0-9]+\/[0-9]+ +Test +#[0-9]+: / {
    line = $0
    sub(/^ *[0-9]+\/[0-9]+ +Test +#/, "", line)
    id = line + 0
    good = $0 ~ /   Passed +[0-9.]+ sec$/
    if (!cases[id]) {
        if (good) passed[id] = 1
        else failed[id] = 1
    } else if (!good && !failed[id]) {
        failed[id] = 1
    }
    sub(/^[0-9]+: /, "", line)
    told = sprintf("%-9s %s (%d cases)", preset, line, passed[id] + failed[id])
    print told
    fflush()
    if (!good) {
        print told >> failures
        for (i = lines[id] > 150 ? lines[id] - 150 : 1; i <= lines[id]; i++) {
            print "    " text[id, i]
            if (i > lines[id] - 30) print "    " text[id, i] >> failures
        }
    }
    all_passed += passed[id]
    all_failed += failed[id]
    next
}

/No tests were found/ { print }

END {
    printf "%-9s %d passed, %d failed, %d pending\n", preset, all_passed, all_failed, pending
    print all_passed + 0, all_failed + 0 >> counts
}
