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

describe('kubeconfig of a webhook', () => {
  it('may refer to files by relative and absolute paths', async () => {
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
    it(`leads to the header Authorization: ${authorization} with user ${user}`, async () => {
      const { headers } = await read('{ server: "https://hook" }', user)
      assert.deepEqual(headers, { authorization })
    })
  }

  it('may contain inline data', async () => {
    const { tls } = await read('{ server: "https://hook", certificate-authority-data: Q0E= }')
    assert.deepEqual(tls, { ca: 'CA' })
  })

  for (const [name, reading, error] of [
    [
      'no context',
      () => read('{ server: x }', '{}', ''),
      /: invalid configuration: no configuration has been provided, try/,
    ],
    ['no server', () => read('{}'), /no configuration has been provided/],
    [
      'several clusters, one without a server',
      () => read('{ tls-server-name: x }'),
      /invalid configuration: no server found for cluster "c"/,
    ],
    [
      'a missing file',
      () => read('{ server: x, certificate-authority: nowhere }'),
      /unable to read certificate-authority \/etc\/hook\/nowhere for c due to open \/etc\/hook\/nowhere: /,
    ],
    [
      'a credential plugin',
      () =>
        read(
          '{ server: x }',
          '{ exec: { command: plug, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never } }',
        ),
      /"exec" of a user is not supported/,
    ],
  ] as const) {
    it(`is refused if it has ${name}`, () => assert.rejects(reading(), error))
  }
})
