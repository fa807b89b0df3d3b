import assert from 'node:assert/strict'
import { test } from 'node:test'

import { answerText, directiveText } from './answer.ts'

test('the output of kubectl completion has a line for each choice, with or without its description', () => {
  const answer = { choices: ['get\tShow things\nand more', 'top\t'], directive: 4 }
  assert.equal(answerText(answer, true), 'get\tShow things\ntop\n:4\n')
  assert.equal(answerText(answer, false), 'get\ntop\n:4\n')
})

test('the output of kubectl completion ends with the names of its directives', () => {
  assert.equal(directiveText(0), 'ShellCompDirectiveDefault')
  assert.equal(directiveText(6), 'ShellCompDirectiveNoSpace, ShellCompDirectiveNoFileComp')
})
