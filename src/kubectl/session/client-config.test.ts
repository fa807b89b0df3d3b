import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { globalFlags } from '../global-flags.ts'
import { clientConfig, type GlobalValues } from './client-config.ts'

const KUBECONFIG = JSON.stringify({
  clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443' } }],
  users: [{ name: 'me', user: { token: 't' } }],
  contexts: [{ name: 'x', context: { cluster: 'c', user: 'me' } }],
  'current-context': 'x',
})

const SOURCES = { env: { KUBECONFIG: '/k' }, cwd: '/', readFile: async () => KUBECONFIG }

function flags(given: Partial<GlobalValues>): GlobalValues {
  const initial = Object.entries(globalFlags({})).map(([name, { initial: value }]) => [name, value])
  return { ...Object.fromEntries(initial), ...given } as GlobalValues
}

describe('kubectl flags for impersonation', () => {
  const lonely: readonly (readonly [flag: string, value: string | string[]])[] = [
    ['as-group', ['system:masters']],
    ['as-uid', '1'],
    ['as-user-extra', ['a=b']],
  ]
  for (const [flag, value] of lonely) {
    it(`are refused if --${flag} is set without --as`, async () => {
      await assert.rejects(clientConfig(flags({ [flag]: value }), SOURCES), {
        message: 'invalid configuration: requesting uid, groups or user-extra for me without impersonating a user',
      })
    })
  }

  it('are refused in a pod if --as-group is set without --as', async () => {
    const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }
    const readFile = async (path: string): Promise<string> => (path.startsWith('/var/run') ? 'x' : '')
    await assert.rejects(
      clientConfig(flags({ 'as-group': ['a'] }), { env, cwd: '/', readFile }),
      /without impersonating/,
    )
  })

  it('set user and groups', async () => {
    const { user } = await clientConfig(flags({ as: 'you', 'as-group': ['a'] }), SOURCES)
    assert.deepEqual(user, { token: 't', as: 'you', 'as-groups': ['a'] })
  })
})
