import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { defineFlags, flag } from './flags.ts'
import { bool, duration, int, string } from './kinds.ts'
import { cidrs, ip, stringMap, strings } from './list-kinds.ts'
import { printUsage } from './usage.ts'

const BIND =
  'The IP address on which to listen for the --secure-port port. The associated interface(s) must be reachable by the rest of the cluster, and by CLI/web clients.'

const set = defineFlags({
  generic: {
    num: flag(int, 5, 'A number', { shorthand: 'n' }),
    all: flag(bool, true, 'All of them'),
    output: flag(string, 'json', 'Output `format`', { shorthand: 'o' }),
    'dry-run': flag(string, 'none', 'Only pretend', { alone: 'unchanged' }),
    grace: flag(duration, 0, 'How long at the end'),
    labels: flag(strings, ['a', 'b c'], 'Some labels\nand more of them'),
    map: flag(
      stringMap,
      new Map([
        ['b', '1'],
        ['a', 'x,y'],
      ]),
      'Map',
    ),
    ranges: flag(cidrs, [], 'Ranges'),
    old: flag(string, '', 'Old', { deprecated: 'use --new' }),
    secret: flag(string, '', 'Secret', { hidden: true }),
    short: flag(string, '', 'Short', { shorthand: 's', shorthandDeprecated: 'use --short' }),
  },
  'secure serving': { 'bind-address': flag(ip, '0.0.0.0', BIND) },
  empty: { gone: flag(string, '', 'Gone', { hidden: true }) },
})

describe('printUsage', () => {
  it('leaves out omitted flags and sections without flags, and prefers brief texts', () => {
    const text = printUsage(set, 0, {
      brief: { all: 'Every one' },
      omit: [...Object.keys(set.groups.generic).filter((name) => name !== 'all'), 'bind-address'],
    })
    assert.equal(text, '\nGeneric flags:\n\n      --all   Every one (default true)\n')
  })

  it('aligns texts beside the flags if the output is no terminal', () => {
    assert.equal(
      printUsage(set, 0),
      `
Generic flags:

      --all                            All of them (default true)
      --dry-run string[="unchanged"]   Only pretend (default "none")
      --grace duration                 How long at the end
      --labels strings                 Some labels
                                       and more of them (default [a,b c])
      --map stringToString             Map (default ["a=x,y",b=1])
  -n, --num int                        A number (default 5)
  -o, --output format                  Output format (default "json")
      --ranges ipNetSlice              Ranges (default [])
      --short string                   Short

Secure serving flags:

      --bind-address ip   ${BIND} (default 0.0.0.0)
`,
    )
  })

  it("puts wrapped texts below the flags on a terminal, as upstream's components do", () => {
    assert.match(
      printUsage(set, 80),
      /\nSecure serving flags:\n\n {6}--bind-address ip\n {16}The IP address on which to listen for the --secure-port\n {16}port. The associated interface\(s\) must be reachable by the\n {16}rest of the cluster, and by CLI\/web clients. \(default 0.0.0.0\)\n$/,
    )
  })

  it('never makes a line longer than the terminal if it contains a space', () => {
    for (let columns = 60; columns <= 200; columns += 7) {
      const longest = Math.max(
        ...printUsage(set, columns)
          .split('\n')
          .map((line) => line.length),
      )
      assert.ok(longest <= columns, `${longest} > ${columns}`)
    }
  })

  it('does not wrap texts for a very narrow terminal', () => {
    assert.equal(printUsage(set, 30), printUsage(set, 0))
  })
})
