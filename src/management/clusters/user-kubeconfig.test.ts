import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { parseYaml } from '#lib/yaml/yaml.ts'

import type { AuthorizedEndpoint } from '../kinds/cluster.ts'
import { userKubeconfig } from './user-kubeconfig.ts'

const WAY = { name: 'shop', server: 'https://manager.example/k8s/clusters/c-1', ca: 'CA', token: 'hk_t-1_x' }

interface Kubeconfig {
  readonly clusters: readonly { readonly name: string; readonly cluster: Readonly<Record<string, string>> }[]
  readonly contexts: readonly { readonly name: string; readonly context: { readonly cluster: string; user: string } }[]
  readonly 'current-context': string
}

function made(endpoint: AuthorizedEndpoint | undefined): Kubeconfig {
  return parseYaml(userKubeconfig({ ...WAY, endpoint })) as unknown as Kubeconfig
}

const serversOf = ({ clusters }: Kubeconfig): string[] =>
  clusters.map(({ name, cluster }) => `${name} ${cluster['server']}`)

const MANAGER = `shop ${WAY.server}`

describe('userKubeconfig() of the management server', () => {
  it('has one context without an authorized endpoint', () => {
    for (const endpoint of [undefined, { enabled: false, fqdn: 'a.example' }])
      assert.deepEqual(serversOf(made(endpoint)), [MANAGER])
  })

  it('has a context for the FQDN and none for the addresses', () => {
    const config = made({ enabled: true, fqdn: 'api.shop.example:443', addresses: ['10.0.0.1'] })
    assert.deepEqual(serversOf(config), [MANAGER, 'shop-fqdn https://api.shop.example:443'])
    assert.equal(config['current-context'], 'shop')
  })

  it('has a context for each address, with the same user and the CA of the endpoint', () => {
    const config = made({
      enabled: true,
      addresses: ['10.0.0.1', 'b.example:443', '[fd00::1]'],
      certificateAuthority: 'X',
    })
    assert.deepEqual(serversOf(config), [
      MANAGER,
      'shop-10.0.0.1 https://10.0.0.1:6443',
      'shop-b.example:443 https://b.example:443',
      'shop-[fd00::1] https://[fd00::1]:6443',
    ])
    assert.deepEqual(
      config.clusters.map(({ cluster }) =>
        Buffer.from(cluster['certificate-authority-data'] ?? '', 'base64').toString(),
      ),
      ['CA', 'X', 'X', 'X'],
    )
    assert.ok(config.contexts.every(({ name, context }) => context.cluster === name && context.user === 'shop'))
  })
})
