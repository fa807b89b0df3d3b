import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createLiveFiles } from '#component/live-files.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { parseKubeconfig } from '#model/kubeconfig/reading.ts'

import { openWebhookCredentials, userFor } from './webhook-credentials.ts'

const kubeconfig = (users: Readonly<Record<string, object>>, rest: object = {}): string =>
  JSON.stringify({ users: Object.entries(users).map(([name, user]) => ({ name, user })), ...rest })

describe('userFor() for a webhook server', () => {
  const context = { 'current-context': 'c', contexts: [{ name: 'c', context: { user: 'mine' } }] }
  const table: readonly (readonly [target: string, names: string, user: string | undefined])[] = [
    ['hook.ns.svc:443', 'hook.ns.svc:443 hook.ns.svc *', 'hook.ns.svc:443'],
    ['hook.ns.svc:443', '*.ns.svc:443 hook.ns.svc', '*.ns.svc:443'],
    ['hook.ns.svc:443', 'hook.ns.svc *.svc', 'hook.ns.svc'],
    ['hook.ns.svc:443', '*.ns.svc *.svc *', '*.ns.svc'],
    ['hook.ns.svc:443', '*.svc *', '*.svc'],
    ['hook.ns.svc:8443', 'hook.ns.svc *', '*'],
    ['example.com:443', 'mine other', 'mine'],
    ['example.com:443', 'other', undefined],
  ]
  for (const [target, names, user] of table) {
    it(`chooses ${user === undefined ? 'no user' : `user "${user}"`} among "${names}" for ${target}`, async () => {
      const users = Object.fromEntries(names.split(' ').map((name) => [name, {}]))
      assert.equal(userFor(await parseKubeconfig(kubeconfig(users, context), '/etc/k'), target), user)
    })
  }
})

describe('credentials for admission webhooks', () => {
  const files = new Map<string, string>()
  const readFile = (path: string): Promise<string> =>
    files.has(path) ? Promise.resolve(files.get(path)!) : Promise.reject(new Error(`no ${path}`))
  const live = createLiveFiles({ clock: createVirtualClock(), readFile, log: { info: () => undefined } as never })
  const open = (): ReturnType<typeof openWebhookCredentials> =>
    openWebhookCredentials({ files: live, readFile }, 'MutatingAdmissionWebhook', '/etc/k')

  it('contain certificates, tokens, passwords and impersonation', async () => {
    files.set('/etc/cert.pem', 'CERT')
    const user = { 'client-certificate': 'cert.pem', 'client-key-data': Buffer.from('KEY').toString('base64') }
    files.set(
      '/etc/k',
      kubeconfig({
        'cert:443': user,
        'token:443': { token: 't', username: 'u', password: 'p' },
        'basic:443': { username: 'u', password: 'p' },
        'as:443': { token: 't', as: 'bob', 'as-groups': ['a', 'b'], 'as-user-extra': { 'x/y': ['1'] } },
      }),
    )
    const credentialsFor = await open()
    assert.deepEqual(credentialsFor('cert:443'), { certificate: 'CERT', key: 'KEY', headers: {} })
    assert.deepEqual(credentialsFor('token:443')?.headers, { authorization: 'Bearer t' })
    assert.deepEqual(credentialsFor('basic:443')?.headers, { authorization: 'Basic dTpw' })
    assert.deepEqual(credentialsFor('as:443')?.headers, {
      authorization: 'Bearer t',
      'impersonate-user': 'bob',
      'impersonate-group': ['a', 'b'],
      'impersonate-extra-x%2Fy': ['1'],
    })
    assert.equal(credentialsFor('other:443'), undefined)
  })

  it('contain the current token of a token file', async () => {
    files.set('/etc/k', kubeconfig({ '*': { tokenFile: '/etc/token' } }))
    files.set('/etc/token', 'one\n')
    const credentialsFor = await open()
    assert.deepEqual(credentialsFor('x:443')?.headers, { authorization: 'Bearer one' })
    files.set('/etc/token', 'two\n')
    await live.poll()
    assert.deepEqual(credentialsFor('x:443')?.headers, { authorization: 'Bearer two' })
  })

  it('have an error with plugin and file if the kubeconfig is unusable', async () => {
    const start =
      'failed to apply admission: couldn\'t init admission plugin "MutatingAdmissionWebhook": cannot use kubeConfigFile "/etc/k":'
    files.set('/etc/k', kubeconfig({ '*': { exec: { command: 'x' } } }))
    await assert.rejects(open(), {
      message: `${start} "exec" of user "*" is not supported; use a certificate or a token`,
    })
    files.delete('/etc/k')
    await assert.rejects(open(), { message: `${start} no /etc/k` })
  })
})
