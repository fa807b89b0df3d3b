# Completion of kubectl in bash 4.1 and later. kubectl itself is asked what may follow: it prints a choice on each line,
# perhaps with a tab and what it means, and at the end a colon with a number that says how to complete.

# What a word of the line stands for: quotes go, "~" and variables become what they name. Nothing is run. Sets REPLY.
__kubectl_plain() {
    local word=$1 quote='' char
    REPLY=''
    if [[ $word == '~' || $word == '~/'* ]]; then
        word=$HOME${word:1}
    fi
    while [[ -n $word ]]; do
        char=${word:0:1}
        word=${word:1}
        if [[ $char == "'" && $quote != '"' || $char == '"' && $quote != "'" ]]; then
            if [[ -n $quote ]]; then quote=''; else quote=$char; fi
        elif [[ $char == '\' && $quote != "'" ]]; then
            REPLY+=${word:0:1}
            word=${word:1}
        elif [[ $char == '$' && $quote != "'" && $word =~ ^(\{?)([A-Za-z_][A-Za-z0-9_]*)(\}?) ]]; then
            REPLY+=${!BASH_REMATCH[2]}
            word=${word:${#BASH_REMATCH[0]}}
        else
            REPLY+=$char
        fi
    done
}

# The words of the line up to the cursor, as they were typed; the last one is what is completed. Sets words.
__kubectl_words() {
    local line=${COMP_LINE:0:COMP_POINT} word='' quote='' char has=''
    words=()
    while [[ -n $line ]]; do
        char=${line:0:1}
        line=${line:1}
        if [[ -z $quote && ($char == ' ' || $char == $'\t') ]]; then
            if [[ -n $has ]]; then words+=("$word"); fi
            word='' has=''
            continue
        fi
        has=1
        word+=$char
        if [[ $char == '\' && $quote != "'" ]]; then
            word+=${line:0:1}
            line=${line:1}
        elif [[ -n $quote ]]; then
            if [[ $char == "$quote" ]]; then quote=''; fi
        elif [[ $char == "'" || $char == '"' ]]; then
            quote=$char
        fi
    done
    words+=("$word")
}

# Asks with the program that stands in the line; an alias is what it says. Sets answer.
__kubectl_ask() {
    local -a program=("${words[0]}") plain=()
    local word REPLY
    if [[ -n ${BASH_ALIASES[${words[0]}]-} ]]; then
        read -ra program <<<"${BASH_ALIASES[${words[0]}]}"
    fi
    for word in "${words[@]:1}"; do
        __kubectl_plain "$word"
        plain+=("$REPLY")
    done
    # An alias may have arguments of its own, which belong to the line.
    mapfile -t answer < <("${program[0]}" __complete "${program[@]:1}" "${plain[@]}" 2>/dev/null)
}

# Folders, and files whose names end with one of the given endings. Sets COMPREPLY.
__kubectl_files() {
    local current=$1 ending
    shift
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(
        compgen -d -- "$current"
        for ending in "$@"; do compgen -f -X "!*.$ending" -- "$current"; done
    )
}

# Choices beside what they mean, as wide as the terminal. Sets COMPREPLY.
__kubectl_described() {
    local -i widest=0 room
    local choice meaning line
    for line in "${choices[@]}"; do
        choice=${line%%$'\t'*}
        ((${#choice} > widest)) && widest=${#choice}
    done
    ((widest > 40)) && widest=40
    room=$((${COLUMNS:-80} - widest - 6))
    for line in "${choices[@]}"; do
        choice=${line%%$'\t'*}
        if [[ $line == *$'\t'* ]] && ((room > 8)); then
            meaning=${line#*$'\t'}
            ((${#meaning} > room)) && meaning=${meaning:0:room-3}...
            printf -v line "%-${widest}s  (%s)" "$choice" "$meaning"
        else
            line=$choice
        fi
        COMPREPLY+=("$line")
    done
}

__start_kubectl() {
    local -a words=() answer=() choices=()
    local current prefix='' line REPLY
    local -i how=0
    COMPREPLY=()
    __kubectl_words
    __kubectl_ask
    __kubectl_plain "${words[${#words[@]} - 1]}"
    current=$REPLY
    if ((${#answer[@]} > 0)); then
        line=${answer[${#answer[@]} - 1]}
        if [[ $line == :* ]]; then
            how=${line#:}
            unset "answer[${#answer[@]} - 1]"
        fi
    fi
    # 1: it went wrong.
    if ((how & 1)); then return; fi
    # The value of a flag is completed alone.
    if [[ $current == -*=* ]]; then
        prefix=${current%%=*}=
        current=${current#*=}
    fi
    # 8: endings of files, 16: folders only.
    if ((how & 8)); then __kubectl_files "$current" "${answer[@]}"; return; fi
    if ((how & 16)); then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(cd "${answer[0]:-.}" 2>/dev/null && compgen -d -- "$current")
        return
    fi
    # 2: more is to follow without a blank, 4: never files, 32: the order counts.
    if ((how & 2)); then compopt -o nospace 2>/dev/null; fi
    if ((how & 4)); then compopt +o default 2>/dev/null; fi
    if ((how & 32)); then compopt -o nosort 2>/dev/null; fi
    for line in "${answer[@]}"; do
        if [[ ${line%%$'\t'*} == "$current"* ]]; then choices+=("$line"); fi
    done
    # A menu of choices inserts them as they are.
    if ((${#choices[@]} == 1 || COMP_TYPE == 37 || COMP_TYPE == 42)); then
        choices=("${choices[@]%%$'\t'*}")
    fi
    __kubectl_described
    if [[ -n $prefix && $COMP_WORDBREAKS != *=* ]]; then COMPREPLY=("${COMPREPLY[@]/#/$prefix}"); fi
    # What stands before a colon is a word of its own to bash.
    if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*:}"}"}")
    fi
}

complete -o default -F __start_kubectl kubectl
