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

describe('what a line asks for', () => {
  const rows: readonly (readonly [args: readonly string[], typed: string, kind: string, flag?: string])[] = [
    [[], '', 'argument'],
    [['x'], 'y', 'argument'],
    [[], '-', 'flag-name'],
    [['x'], '--im', 'flag-name'],
    [['--image'], '', 'flag-value', 'image'],
    [[], '--image=a', 'flag-value', 'image'],
    [['-n'], 'k', 'flag-value', 'namespace'],
    [['-an'], 'k', 'flag-value', 'namespace'],
    [['--all'], '', 'argument'],
    [['-a'], 'x', 'argument'],
    [[], '--all=', 'flag-value', 'all'],
    [['--'], '-', 'argument'],
    [['--', '--image'], '', 'argument'],
    [['--help'], '', 'nothing'],
  ]
  for (const [args, typed, kind, name] of rows) {
    it(`${[...args, `"${typed}"`].join(' ')}: ${kind} ${name ?? ''}`, () => {
      const question = ask(args, typed)
      assert.deepEqual([question.kind, question.flag?.name], [kind, name])
    })
  }

  it('leaves flags to the program behind the first argument where that is how it goes', () => {
    assert.equal(ask(['x'], '-', true).kind, 'argument')
    assert.equal(ask([], '-', true).kind, 'flag-name')
  })

  it('takes what stands behind the equals sign for the value', () => {
    assert.equal(ask([], '--image=a=b').typed, 'a=b')
  })

  it('says why it cannot tell', () => {
    assert.throws(() => ask([], '--nosuch='), new QuestionError("Subcommand 'some' does not support flag 'nosuch'"))
    assert.throws(() => ask(['--all=x'], ''), /Error while parsing flags from args \[--all=x\]: invalid argument/)
  })
})

describe('names of flags', () => {
  const names = (args: readonly string[], typed: string): string[] =>
    flagNames(FLAGS, ask(args, typed), false).map((choice) => choice.split('\t')[0] ?? '')

  it('come with what they mean, those of every command first', () => {
    assert.deepEqual(flagNames(FLAGS, ask([], '--im'), false), ['--image\tAn image'])
    assert.deepEqual(names([], '--a').slice(0, 3), ['--as', '--as-group', '--as-uid'])
    assert.ok(names([], '--a').indexOf('--all') > names([], '--a').indexOf('--as-user-extra'))
  })

  it('leave out what was given, unless it may be given again, and what is deprecated', () => {
    assert.deepEqual(names(['--image=x'], '--im'), [])
    assert.deepEqual(names(['--many=x'], '--man'), ['--many'])
    assert.deepEqual(names([], '--ol'), [])
  })

  it('are those that must be given, while they are not', () => {
    const required = flagsFor({ ...COMMAND, flags: { image: flag(string, '', 'An image', { required: true }) } }, {})
    const question = questionOf({ name: 'some', args: [], flags: required, stopsAtArgs: false }, '--')
    assert.deepEqual(flagNames(required, question, false), ['--image\tAn image'])
    assert.deepEqual(requiredFlags(required, { ...question, typed: '' }), ['--image\tAn image'])
  })
})
