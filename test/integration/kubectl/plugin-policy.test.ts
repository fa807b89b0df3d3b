/** Tests kuberc's policy for credential plugins, with real programs of this machine. */
import assert from 'node:assert/strict'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { runAllowed } from '#kubectl/kuberc/plugin-policy.ts'
import type { PluginPolicy } from '#kubectl/session/preference.ts'

let folder = ''

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hyperkube-plugin-policy-'))
  for (const place of ['one', 'two']) {
    await mkdir(join(folder, place))
    const file = join(folder, place, 'credentials')
    await writeFile(file, `#!/bin/sh\necho ${place}\n`)
    await chmod(file, 0o755)
  }
})

after(() => rm(folder, { recursive: true, force: true }))

function list(...commands: readonly string[]): PluginPolicy {
  return { type: 'Allowlist', allowlist: commands.map((command) => ({ command, name: '' })) }
}

async function run(policy: PluginPolicy, command: string): Promise<string> {
  const env = { PATH: `${join(folder, 'one')}:/usr/bin:/bin` }
  return (await runAllowed(policy)(command, [], { env, isInteractive: false })).output.trim()
}

describe('credential plugins under the policy in kuberc', () => {
  it('run without a policy', async () => {
    assert.equal(await run({ type: '' }, 'credentials'), 'one')
    assert.equal(await run({ type: 'AllowAll' }, join(folder, 'two', 'credentials')), 'two')
  })

  it('do not run under policy DenyAll', async () => {
    await assert.rejects(
      run({ type: 'DenyAll' }, 'credentials'),
      /plugin "credentials" not allowed: policy set to "DenyAll"/,
    )
  })

  it('run if the allowlist contains their name or file', async () => {
    assert.equal(await run(list('credentials'), 'credentials'), 'one')
    assert.equal(await run(list(join(folder, 'one', 'credentials')), 'credentials'), 'one')
    assert.equal(await run(list('credentials'), join(folder, 'one', 'credentials')), 'one')
  })

  it('do not run if only the name matches and the file differs', async () => {
    await assert.rejects(
      run(list('credentials'), join(folder, 'two', 'credentials')),
      /two\/credentials" is not permitted by the credential plugin allowlist/,
    )
    await assert.rejects(run(list('other'), 'credentials'), /one\/credentials" is not permitted/)
    await assert.rejects(
      run(list('other'), 'nosuch'),
      /plugin path "nosuch" cannot be resolved .*executable file not found/,
    )
  })
})
