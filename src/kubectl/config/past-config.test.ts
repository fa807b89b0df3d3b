import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { atMoment } from './past-config.ts'
import { configurationOf, configurationValue } from './stanzas.ts'

function changed(cluster: object, user: object = {}): { readonly cluster: object; readonly user: object } {
  const config = configurationOf(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    } as never,
    '/home/ann/.kube/config',
  )
  const value = configurationValue(atMoment(config, '2026-11-18T03:00:00Z', '/work')) as unknown as {
    readonly clusters: [{ readonly cluster: object }]
    readonly users: [{ readonly user: object }]
  }
  return { cluster: value.clusters[0].cluster, user: value.users[0].user }
}

describe('kubeconfig of an earlier state', () => {
  it('adds the path of the moment to the server', () => {
    const rows = [
      ['https://10.0.0.1:6443', 'https://10.0.0.1:6443/past/2026-11-18T03:00:00Z'],
      ['https://10.0.0.1:6443/', 'https://10.0.0.1:6443/past/2026-11-18T03:00:00Z'],
      ['https://server/k8s/clusters/prod', 'https://server/k8s/clusters/prod/past/2026-11-18T03:00:00Z'],
      ['https://10.0.0.1:6443/past/rv:812', 'https://10.0.0.1:6443/past/2026-11-18T03:00:00Z'],
    ] as const
    for (const [server, expected] of rows) assert.deepEqual(changed({ server }).cluster, { server: expected })
  })

  it('has absolute paths, and leaves embedded data as they are', () => {
    const { cluster, user } = changed(
      { server: 'https://a', 'certificate-authority': 'pki/ca.crt' },
      { 'client-certificate': '/etc/ann.crt', 'client-key-data': 'a2V5', tokenFile: '../token' },
    )
    assert.equal((cluster as Record<string, unknown>)['certificate-authority'], '/home/ann/.kube/pki/ca.crt')
    assert.deepEqual(user, {
      'client-certificate': '/etc/ann.crt',
      'client-key-data': 'a2V5',
      tokenFile: '/home/ann/token',
    })
  })
})
