# Completion of kubectl in fish 3 and later. kubectl itself is asked what may follow: it prints a choice on each line,
# perhaps with a tab and what it means, and at the end a colon with a number that says how to complete.

# Fills __kubectl_choices. Succeeds when fish need not look for files itself.
function __kubectl_choices_found
    set -g __kubectl_choices
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    # "string unescape" takes quotes away, and runs nothing.
    set -l plain (string unescape -- $words[2..-1])
    set -l last (string unescape -- $current)
    test -z "$last"; and set last (string replace -r '^~/' "$HOME/" -- "$current")
    set -l answer ($words[1] __complete $plain "$last" 2>/dev/null)
    set -l how 0
    if set -q answer[1]; and string match -qr '^:\d+$' -- $answer[-1]
        set how (string sub -s 2 -- $answer[-1])
        set -e answer[-1]
    end
    # 1: it went wrong. 8 and 16: files, which fish chooses among itself.
    if test (math "bitand($how, 1)") -ne 0
        return 1
    end
    if test (math "bitand($how, 24)") -ne 0
        return 1
    end
    # The value of a flag is completed with the flag before it.
    set -l prefix ''
    if string match -q -- '-*=*' "$last"
        set prefix (string replace -r '=.*' '=' -- "$last")
    end
    for line in $answer
        if test -n "$line"
            set -ga __kubectl_choices "$prefix$line"
        end
    end
    # 2: more is to follow without a blank. fish leaves the blank out when there are two choices.
    if test (math "bitand($how, 2)") -ne 0; and test (count $__kubectl_choices) -eq 1
        set -l only (string split -m 1 \t -- $__kubectl_choices[1])[1]
        if not string match -qr '[@=/:.,]$' -- "$only"
            set -ga __kubectl_choices "$only."
        end
    end
    # 4: never files.
    if test (math "bitand($how, 4)") -ne 0
        return 0
    end
    test (count $__kubectl_choices) -gt 0
end

complete -c kubectl -e
complete -c kubectl -n 'not __kubectl_choices_found' -F
complete -c kubectl -n __kubectl_choices_found -f -k -a '$__kubectl_choices'
