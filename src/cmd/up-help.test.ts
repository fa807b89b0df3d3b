import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { runProgram } from '#kits/cmd/run-program.ts'

import { up } from './cluster/up.ts'

async function printed(flag: string): Promise<string> {
  const { signal } = new AbortController()
  const outcome = await runProgram((context) => up.run(context, signal), { path: ['hyperkube', 'up'], args: [flag] })
  return outcome.out
}

describe('hyperkube up', () => {
  it('prints a help of about fifty lines in sections, without feature gates', async () => {
    const help = await printed('--help')
    assert.ok(help.split('\n').length < 70, help)
    assert.doesNotMatch(help, /AllAlpha/)
    for (const title of ['Cluster', 'API server', 'Controllers and scheduler', 'Node', 'Network', 'Auditing', 'Logs']) {
      assert.match(help, new RegExp(`\\n${title} flags:\\n`))
    }
  })

  it('prints every gate and every flag with --help-all', async () => {
    const help = await printed('--help-all')
    for (const text of ['AllAlpha=true|false', '--audit-webhook-mode', '--vmodule'])
      assert.ok(help.includes(text), text)
  })
})
