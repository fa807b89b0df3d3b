#compdef kubectl
compdef _kubectl kubectl

# Completion of kubectl in zsh 5.2 and later. kubectl itself is asked what may follow: it prints a choice on each line,
# perhaps with a tab and what it means, and at the end a colon with a number that says how to complete.
_kubectl() {
    local -a answer choices options plain
    local line choice meaning
    local -i how=0

    # Quotes go and "~" becomes the home folder; nothing is run.
    plain=("${(@Q)words[2,CURRENT]}")
    plain=("${(@)plain/#\~\//$HOME/}")
    answer=("${(@f)$("${(Q)words[1]}" __complete "${plain[@]}" 2>/dev/null)}")
    line=${answer[-1]}
    if [[ $line == :<-> ]]; then
        how=${line#:}
        answer[-1]=()
    fi
    # 1: it went wrong.
    if (( how & 1 )); then return 1; fi
    # The value of a flag is completed alone.
    if [[ $plain[-1] == -*=* ]]; then compset -P '*='; fi
    # 8: endings of files, 16: folders only.
    if (( how & 8 )); then
        _files -g "*.(${(j:|:)answer})"
        return
    fi
    if (( how & 16 )); then
        _files -/ -W "${answer[1]:-.}"
        return
    fi
    for line in "${(@)answer}"; do
        if [[ -z $line ]]; then continue; fi
        choice=${${line%%$'\t'*}//:/\\:}
        meaning=
        if [[ $line == *$'\t'* ]]; then meaning=:${line#*$'\t'}; fi
        choices+=("$choice$meaning")
    done
    # 2: more is to follow without a blank, 4: never files, 32: the order counts.
    if (( how & 2 )); then options+=(-S ''); fi
    if (( how & 32 )); then
        _describe -V completions choices "${options[@]}" && return 0
    else
        _describe completions choices "${options[@]}" && return 0
    fi
    if (( how & 4 )); then return 1; fi
    _files
}

# When it is loaded by name and not with "source".
if [[ $funcstack[1] == _kubectl ]]; then _kubectl; fi
