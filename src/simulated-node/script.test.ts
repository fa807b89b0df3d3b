import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { readScript } from './script.ts'

/** Duration, exit code and output. */
function does(...command: string[]): string {
  const script = readScript(command)
  if (script === undefined) return 'unknown'
  const { runMs, exitCode, lines, repeated } = script
  const textOf = (some: typeof lines): string => some.map(({ afterMs, text }) => ` ${afterMs}:${text}`).join('')
  return `${runMs} ${exitCode}${textOf(lines)}${repeated === undefined ? '' : ` every ${repeated.everyMs}${textOf(repeated.lines)}`}`
}

describe('readScript() of a simulated container', () => {
  const cases: readonly [command: string[], expected: string][] = [
    [['sleep', '5'], '5000 0'],
    [['/bin/sleep', '1m'], '60000 0'],
    [['sleep', 'infinity'], 'Infinity 0'],
    [['true'], '0 0'],
    [['/bin/false'], '0 1'],
    [['echo', 'hello', 'world'], '0 0 0:hello world'],
    [['nginx', '-g', 'daemon off;'], 'unknown'],
    [[], 'unknown'],
    [['sh', '-c', 'exit 3'], '0 3'],
    [['/bin/sh', '-ec', 'sleep 3; exit 2'], '3000 2'],
    [['bash', '-c', 'echo "a b"; sleep 1 && echo done'], '1000 0 0:a b 1000:done'],
    [['sh', '-c', 'false || exit 4'], '0 4'],
    [['sh', '-c', 'false && echo never'], '0 1'],
    [['sh', '-c', 'touch /tmp/healthy; sleep 30; rm -f /tmp/healthy; sleep 600'], '630000 0'],
    [['sh', '-c', 'echo hi > /dev/termination-log; exit 1'], '0 1 0:hi'],
    [['sh', '-c', 'while true; do echo hi; sleep 2; done'], 'Infinity 0 every 2000 0:hi'],
    [['sh', '-c', 'echo up; sleep 1; while true; do echo hi; sleep 2; done'], 'Infinity 0 0:up every 2000 1000:hi'],
    [['sh', '-c', 'echo start; exec nginx'], 'Infinity 0 0:start'],
    [['sh', '-c', 'for i in 1 2 3; do echo $i; done'], 'Infinity 0'],
    [['sh', '-c', 'cat <<EOF'], 'unknown'],
  ]
  for (const [command, expected] of cases) {
    it(`interprets ${command.join(' ') || 'an empty command'}`, () => assert.equal(does(...command), expected))
  }
})
