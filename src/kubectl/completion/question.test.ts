import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'

import type { Command } from '../command.ts'
import { flagsFor } from '../line-flags.ts'
import { flagNames, QuestionError, questionOf, requiredFlags } from './question.ts'

const COMMAND: Command = {
  name: 'some',
  use: '',
  long: '',
  flags: {
    all: flag(bool, false, 'All of them', { shorthand: 'a' }),
    image: flag(string, '', 'An image'),
    many: flag(strings, [], 'Many'),
    old: flag(string, '', 'Old', { deprecated: 'do not' }),
  },
}
const FLAGS = flagsFor(COMMAND, {})

function ask(args: readonly string[], typed: string, stopsAtArgs = false): ReturnType<typeof questionOf> {
  return questionOf({ name: 'some', args, flags: FLAGS, stopsAtArgs }, typed)
}

describe('questionOf() for shell completion', () => {
  const rows: readonly (readonly [line: string, kind: string, flag?: string])[] = [
    ['', 'argument'],
    ['x y', 'argument'],
    ['-', 'flag-name'],
    ['x --im', 'flag-name'],
    ['--image ', 'flag-value', 'image'],
    ['--image=a', 'flag-value', 'image'],
    ['-n k', 'flag-value', 'namespace'],
    ['-an k', 'flag-value', 'namespace'],
    ['--all ', 'argument'],
    ['-a x', 'argument'],
    ['--all=', 'flag-value', 'all'],
    ['-- -', 'argument'],
    ['-- --image ', 'argument'],
    ['--help ', 'nothing'],
  ]
  for (const [line, kind, name] of rows) {
    it(`expects ${kind}${name === undefined ? '' : ` of --${name}`} at the end of "${line}"`, () => {
      const words = line.split(' ')
      const question = ask(words.slice(0, -1), words.at(-1) ?? '')
      assert.deepEqual([question.kind, question.flag?.name], [kind, name])
    })
  }

  it('leaves flags after the first argument to the other program for commands such as exec', () => {
    assert.equal(ask(['x'], '-', true).kind, 'argument')
    assert.equal(ask([], '-', true).kind, 'flag-name')
  })

  it('takes the text after the equals sign as the value', () => {
    assert.equal(ask([], '--image=a=b').typed, 'a=b')
  })

  it('throws for a flag that does not exist', () => {
    assert.throws(() => ask([], '--nosuch='), new QuestionError("Subcommand 'some' does not support flag 'nosuch'"))
    assert.throws(() => ask(['--all=x'], ''), /Error while parsing flags from args \[--all=x\]: invalid argument/)
  })
})

describe('flagNames() for shell completion', () => {
  const names = (args: readonly string[], typed: string): string[] =>
    flagNames(FLAGS, ask(args, typed), false).map((choice) => choice.split('\t')[0] ?? '')

  it('lists descriptions, with global flags first', () => {
    assert.deepEqual(flagNames(FLAGS, ask([], '--im'), false), ['--image\tAn image'])
    assert.deepEqual(names([], '--a').slice(0, 3), ['--as', '--as-group', '--as-uid'])
    assert.ok(names([], '--a').indexOf('--all') > names([], '--a').indexOf('--as-user-extra'))
  })

  it('omits given flags that cannot repeat, and deprecated flags', () => {
    assert.deepEqual(names(['--image=x'], '--im'), [])
    assert.deepEqual(names(['--many=x'], '--man'), ['--many'])
    assert.deepEqual(names([], '--ol'), [])
  })

  it('lists only the required flags while one of them is missing', () => {
    const required = flagsFor({ ...COMMAND, flags: { image: flag(string, '', 'An image', { required: true }) } }, {})
    const question = questionOf({ name: 'some', args: [], flags: required, stopsAtArgs: false }, '--')
    assert.deepEqual(flagNames(required, question, false), ['--image\tAn image'])
    assert.deepEqual(requiredFlags(required, { ...question, typed: '' }), ['--image\tAn image'])
  })
})
