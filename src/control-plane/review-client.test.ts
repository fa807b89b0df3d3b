import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { readWebhookConfig, type WebhookTarget } from './review-client.ts'

const FILES: Readonly<Record<string, string>> = {
  '/etc/hook/ca.pem': 'CA',
  '/etc/hook/me.pem': 'CERT',
  '/keys/me.key': 'KEY',
  '/etc/hook/token': 'abc\n',
}

function read(cluster: string, user = '{}', rest = 'current-context: w'): Promise<WebhookTarget> {
  const text = `
apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: ${cluster} }]
users: [{ name: u, user: ${user} }]
contexts: [{ name: w, context: { cluster: c, user: u } }]
${rest}
`
  return readWebhookConfig('/etc/hook/config', (path) => {
    const found = path === '/etc/hook/config' ? text : FILES[path]
    return found === undefined ? Promise.reject(new Error(`ENOENT ${path}`)) : Promise.resolve(found)
  })
}

describe('readWebhookConfig', () => {
  it('takes files beside the kubeconfig, and absolute ones', async () => {
    const cluster = '{ server: "https://hook/x", certificate-authority: ca.pem, tls-server-name: other }'
    assert.deepEqual(await read(cluster, '{ client-certificate: me.pem, client-key: /keys/me.key }'), {
      url: 'https://hook/x',
      tls: { ca: 'CA', certificate: 'CERT', key: 'KEY', serverName: 'other' },
      headers: {},
    })
  })

  for (const [user, authorization] of [
    ['{ token: t }', 'Bearer t'],
    ['{ tokenFile: token }', 'Bearer abc'],
    ['{ username: me, password: pw }', 'Basic bWU6cHc='],
  ] as const) {
    it(`sends ${authorization} for ${user}`, async () => {
      const { headers } = await read('{ server: "https://hook" }', user)
      assert.deepEqual(headers, { authorization })
    })
  }

  it('takes what is inline', async () => {
    const { tls } = await read('{ server: "https://hook", certificate-authority-data: Q0E= }')
    assert.deepEqual(tls, { ca: 'CA' })
  })

  for (const [name, reading, error] of [
    ['no context', () => read('{ server: x }', '{}', ''), /there is no context ""/],
    ['no server', () => read('{}'), /the cluster has no "server"/],
    ['a missing file', () => read('{ server: x, certificate-authority: nowhere }'), /ENOENT \/etc\/hook\/nowhere/],
    ['a plugin', () => read('{ server: x }', '{ exec: { command: y } }'), /"exec" of a user is not supported/],
  ] as const) {
    it(`refuses ${name}`, () => assert.rejects(reading(), error))
  }
})
