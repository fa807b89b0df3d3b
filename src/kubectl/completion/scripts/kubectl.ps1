# Completion of kubectl in PowerShell 5 and later. kubectl itself is asked what may follow: it prints a choice on each
# line, perhaps with a tab and what it means, and at the end a colon with a number that says how to complete.
[scriptblock]$__kubectlCompleterBlock = {
    param($WordToComplete, $CommandAst, $CursorPosition)

    # The words up to the cursor, with their quotes taken away.
    $elements = @($CommandAst.CommandElements | Where-Object { $_.Extent.StartOffset -lt $CursorPosition })
    $program = $elements[0].Extent.Text
    $words = @($elements | Select-Object -Skip 1 | ForEach-Object {
        if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text }
    })
    # An empty word at the end says that a new one begins. Older versions drop one that has no quotes.
    if ($WordToComplete -eq '') {
        $isOld = $PSVersionTable.PsVersion -lt [version]'7.2.0' -or $PSNativeCommandArgumentPassing -eq 'Legacy'
        $words += $(if ($isOld) { '""' } else { '' })
    }
    $answer = @(& $program __complete @words 2>$null)
    $how = 0
    if ($answer.Count -gt 0 -and $answer[-1] -match '^:(\d+)$') {
        $how = [int]$Matches[1]
        $answer = @($answer | Select-Object -SkipLast 1)
    }
    # 1: it went wrong. 8 and 16: files, which PowerShell completes itself.
    if (($how -band 1) -ne 0 -or ($how -band 24) -ne 0) { return }
    # The value of a flag is completed with the flag before it.
    $prefix = ''
    if ($WordToComplete -match '^(-[^=]*=)') { $prefix = $Matches[1] }
    # 2: more is to follow without a blank.
    $blank = $(if (($how -band 2) -ne 0) { '' } else { ' ' })
    $choices = @($answer | ForEach-Object {
        $name, $meaning = $_ -split "`t", 2
        if (-not $meaning) { $meaning = ' ' }
        [PSCustomObject]@{ Text = "$prefix$name"; Meaning = $meaning }
    } | Where-Object { $_.Text -like "$WordToComplete*" })
    # 32: the order counts.
    if (($how -band 32) -eq 0) { $choices = @($choices | Sort-Object -Property Text) }
    if ($choices.Count -eq 0) {
        # 4: never files; an empty text keeps PowerShell from looking for some.
        if (($how -band 4) -ne 0) { '' }
        return
    }
    foreach ($choice in $choices) {
        $text = $choice.Text -replace '([\s;|&(){}$@''"`#<>,])', '`$1'
        [System.Management.Automation.CompletionResult]::new("$text$blank", $choice.Text, 'ParameterValue', $choice.Meaning)
    }
}

# Aliases are registered with the same block, by its name.
Register-ArgumentCompleter -CommandName 'kubectl' -ScriptBlock $__kubectlCompleterBlock
