/**
 * Tests which user the server sees for each kind of client credentials: token files, plugins, certificates,
 * impersonation.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { ApiClient } from '#client/api-client.ts'
import { type ConnectionTools, openConnection } from '#client/connection/connection.ts'
import { type Clock, realClock } from '#lib/clock.ts'
import type { ClusterEntry, UserEntry } from '#model/kubeconfig/entries.ts'
import { type ClientConfig, parseKubeconfig } from '#model/kubeconfig/reading.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

interface Me {
  readonly username: string
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

describe('connection of the API client', () => {
  let plane: ControlPlane
  let shiftMs = 0
  const clock: Clock = { ...realClock, elapsed: () => realClock.elapsed() + shiftMs }

  before(async () => {
    const tokens = 'admin,admin,admin,"system:masters"\none,first,1\ntwo,second,2\n'
    plane = await startControlPlane({ files: new Map([['tokens.csv', tokens]]) })
  })
  after(() => plane.stop())

  const configOf = (user: UserEntry, cluster: ClusterEntry = {}): ClientConfig => ({
    cluster: { server: plane.url, 'certificate-authority-data': Buffer.from(plane.ca).toString('base64'), ...cluster },
    user,
    namespace: '',
  })

  /** Returns a function that requests the user of the connection. */
  async function ask(config: ClientConfig, tools: Partial<ConnectionTools> = {}): Promise<() => Promise<Me>> {
    const missing = (path: string): Promise<string> => Promise.reject(new Error(`no ${path}`))
    const { transport, server } = await openConnection(config, { clock, readFile: missing, ...tools })
    const client = new ApiClient({ transport, server, clock, userAgent: 'test' })
    return async () => {
      const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
      const answer = await client.ask({ method: 'POST', path, body: { spec: {} } })
      return (JSON.parse(await answer.text(1 << 20)) as { status: { userInfo: Me } }).status.userInfo
    }
  }

  it('uses the current token of a token file', async () => {
    let token = 'one\n'
    const me = await ask(configOf({ tokenFile: '/t' }), { readFile: () => Promise.resolve(token) })
    assert.equal((await me()).username, 'first')
    token = 'two\n'
    assert.equal((await me()).username, 'first')
    shiftMs += 60_000
    assert.equal((await me()).username, 'second')
  })

  it('runs a credential plugin again when the server rejects its credentials', async () => {
    const tokens = ['wrong', 'two']
    const exec = { command: 'x', apiVersion: 'client.authentication.k8s.io/v1', interactiveMode: 'Never' }
    const run: ConnectionTools['run'] = () =>
      Promise.resolve({
        code: 0,
        output: JSON.stringify({ apiVersion: exec.apiVersion, status: { token: tokens.shift() } }),
      })
    const me = await ask(configOf({ exec }), { run })
    await assert.rejects(me(), { name: 'StatusError', message: 'Unauthorized' })
    assert.equal((await me()).username, 'second')
  })

  it('presents a client certificate and impersonates a user', async () => {
    const { users } = await parseKubeconfig(plane.kubeconfig, '/k')
    const [admin = {}] = users.values()
    assert.equal((await (await ask(configOf(admin)))()).username, 'admin')
    const other = { as: 'somebody', 'as-groups': ['g1', 'g2'], 'as-user-extra': { 'a.b/C': ['v'] } }
    const { username, groups, extra } = await (await ask(configOf({ ...admin, ...other })))()
    assert.deepEqual([username, groups, extra], ['somebody', ['g1', 'g2', 'system:authenticated'], { 'a.b/c': ['v'] }])
  })

  const refusals: readonly [what: string, user: UserEntry, cluster: ClusterEntry, message: string][] = [
    [
      'a proxy',
      {},
      { 'proxy-url': 'http://p' },
      'proxy-url "http://p" is not supported: connections are made directly',
    ],
    ['an auth provider', { 'auth-provider': { name: 'gcp' } }, {}, 'no Auth Provider found for name "gcp"'],
    [
      'a CA that would be ignored',
      {},
      { 'insecure-skip-tls-verify': true },
      'specifying a root certificates file with the insecure flag is not allowed',
    ],
  ]
  for (const [what, user, cluster, message] of refusals) {
    it(`is refused with ${what}`, async () => {
      await assert.rejects(ask(configOf(user, cluster)), { name: 'ConfigError', message })
    })
  }
})
