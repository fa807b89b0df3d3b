/**
 * Tests the authorized endpoint of a cluster: its API server accepts tokens of the management server while that
 * server is away.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'

import { Secrets } from '#apis/core/v1.ts'
import { ClusterRoleBindings } from '#apis/rbac/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { programConfig } from '#client/connection/config.ts'
import { openConnection } from '#client/connection/connection.ts'
import { AUTH_NAMESPACE, ClusterAuthTokens, ClusterUserAttributes } from '#cluster-agent/api-auth/kinds.ts'
import { runProgram } from '#kits/cmd/run-program.ts'
import { realClock } from '#lib/clock.ts'
import { bind } from '#lib/http/listen.ts'
import { ownerBinding } from '#management/clusters/access-objects.ts'
import { removeAuthTokens } from '#management/clusters/apply-auth-tokens.ts'
import { Projects, Roles } from '#management/kinds/access.ts'
import { type AuthorizedEndpoint, Clusters, LOCAL_CLUSTER } from '#management/kinds/cluster.ts'
import type { KubeObject } from '#meta/object.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { kubeApiAuth } from '../../../src/cmd/management/kube-api-auth.ts'
import { eventually, type ManagementBed, startManagementBed } from './bed.ts'

const HYPERKUBE = join(import.meta.dirname, '..', '..', '..', 'bin', 'hyperkube')
const SELF = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const SELF_REVIEW = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }

describe('authorized endpoint of a cluster', () => {
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-'))
  const cacheFile = join(folder, 'cache.json')
  const kubeconfig = join(folder, 'kubeconfig')
  let bed: ManagementBed
  let plane: ControlPlane
  let client: ApiClient
  let authPort = 0
  let stopAuth: () => Promise<void>
  let [id, otherId] = ['', '']
  let jane: { readonly name: string; readonly token: string }
  let eve: { readonly name: string; readonly token: string }
  const closing = new AsyncDisposableStack()

  before(async () => {
    authPort = await freePort()
    plane = await startControlPlane({
      settings: {
        'authentication-token-webhook-config-file': 'webhook.kubeconfig',
        'authentication-token-webhook-cache-ttl': 1,
      },
      files: new Map([['webhook.kubeconfig', webhookConfig(authPort)]]),
    })
    writeFileSync(kubeconfig, plane.kubeconfig)
    const config = await programConfig({ kubeconfig, master: '' }, { env: {}, cwd: '/', readFile: read })
    const connection = await openConnection(config, { clock: realClock, readFile: read })
    closing.defer(() => connection.close())
    client = new ApiClient({ ...connection, clock: realClock, userAgent: 'test' })
    stopAuth = startAuth()
    bed = await startManagementBed()
    jane = await bed.createUser('jane')
    eve = await bed.createUser('eve')
    id = await importCluster('shop')
    const made = await bed.request('POST', '/v3/clusters', { token: bed.administrator, body: { displayName: 'other' } })
    otherId = made.body['cluster'].metadata.name as string
    for (const { name } of [jane, eve]) await addMember({ role: 'cluster-member', user: name })
  })
  after(async () => {
    await bed[Symbol.asyncDispose]()
    await stopAuth()
    await closing.disposeAsync()
    await plane.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Runs `hyperkube kube-api-auth`; returns a function that stops it. */
  function startAuth(): () => Promise<void> {
    const stop = new AbortController()
    const args = [`--listen=127.0.0.1:${authPort}`, `--kubeconfig=${kubeconfig}`, `--cache-file=${cacheFile}`]
    const ended = runProgram((context) => kubeApiAuth.run(context, stop.signal), {
      args,
      clock: realClock,
      readFile: read,
    })
    return async () => {
      stop.abort(new Error('stopped'))
      const { code, err } = await ended
      assert.equal(code, 0, err)
    }
  }

  async function importCluster(displayName: string): Promise<string> {
    const made = await bed.request('POST', '/v3/clusters', { token: bed.administrator, body: { displayName } })
    await client.create(ClusterRoleBindings, ownerBinding())
    bed.runAgent(plane.kubeconfig, made.body['token'] as string)
    const name = made.body['cluster'].metadata.name as string
    await eventually('the cluster has the roles', () => conditionOf(name, 'RolesApplied') === 'True')
    return name
  }

  function conditionOf(cluster: string, type: string): string | undefined {
    const { status } = bed.running.objects.get(Clusters, cluster) ?? {}
    return status?.conditions?.find((condition) => condition.type === type)?.status
  }

  async function addMember(body: object): Promise<string> {
    const added = await bed.request('POST', `/v3/clusters/${id}/members`, { token: bed.administrator, body })
    assert.equal(added.status, 201, added.text)
    return added.body['metadata'].name as string
  }

  async function setEndpoint(authorizedEndpoint: AuthorizedEndpoint, name = id): Promise<void> {
    await bed.running.objects.change(Clusters, name, (cluster) => ({
      ...cluster,
      spec: { ...cluster.spec, authorizedEndpoint },
    }))
  }

  async function tokenOf(token: string, body: object): Promise<{ readonly text: string; readonly name: string }> {
    const made = await bed.request('POST', '/v3/tokens', { token, body })
    assert.equal(made.status, 201, made.text)
    const text = made.body['token'] as string
    return { text, name: text.split('_')[1] ?? '' }
  }

  type Answer = Awaited<ReturnType<ControlPlane['request']>>

  const direct = (token: string, method: string, path: string, body?: unknown): Promise<Answer> =>
    plane.request(method, path, body, { authorization: `Bearer ${token}` })
  const isAccepted = async (token: string): Promise<boolean> => (await direct(token, 'GET', '/api')).status === 200
  const review = (body: unknown): Promise<Response> =>
    fetch(`http://127.0.0.1:${authPort}/v1/authenticate`, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  const statusOf = async (token: string): Promise<unknown> => {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } }
    const answer = await review(body)
    assert.equal(answer.status, 200)
    return ((await answer.json()) as { readonly status: unknown }).status
  }

  it('can be disabled in a cluster that never had one', async () => {
    await removeAuthTokens(client, new AbortController().signal)
    assert.equal(conditionOf(id, 'TokensApplied'), undefined)
  })

  it('does not exist for the cluster of the server itself', async () => {
    const change = setEndpoint({ enabled: true }, LOCAL_CLUSTER)
    await assert.rejects(change, /the cluster of the server itself has no authorized endpoint/)
  })

  let token = ''
  const userFile = join(folder, 'user.kubeconfig')
  it('has a context for each of its addresses in the kubeconfig', async () => {
    await setEndpoint({ enabled: true, addresses: [new URL(plane.url).host], certificateAuthority: plane.ca })
    const { text } = await bed.request('POST', `/v3/clusters/${id}/kubeconfig`, { token: jane.token, body: {} })
    assert.match(text, new RegExp(`server: ${plane.url}`))
    assert.match(text, /name: "?shop-127\.0\.0\.1:\d+/)
    ;[, token = ''] = /token: (\S+)/.exec(text) ?? []
    writeFileSync(userFile, text)
    const all = await bed.request('POST', `/v3/clusters/${id}/kubeconfig`, {
      token: jane.token,
      body: { scope: 'all' },
    })
    assert.ok(!all.text.includes(plane.url))
  })

  it('gives a token the same permissions as through the management server', async () => {
    await eventually('the API server accepts the token', () => isAccepted(token))
    assert.equal(conditionOf(id, 'TokensApplied'), 'True')
    const through = await bed.request('POST', `/k8s/clusters/${id}${SELF}`, { token, body: SELF_REVIEW })
    const straight = (await direct(token, 'POST', SELF, SELF_REVIEW)).json() as typeof through.body
    const { username, groups } = straight['status'].userInfo as { username: string; groups: string[] }
    const other = through.body['status'].userInfo as { username: string; groups: string[] }
    assert.deepEqual([username, groups.toSorted()], [jane.name, other.groups.toSorted()])
    assert.equal(other.username, jane.name)
    assert.equal((await direct(token, 'GET', '/api/v1/nodes')).status, 200)
    assert.equal((await direct(token, 'GET', '/api/v1/secrets')).status, 403)
  })

  it('applies a changed project membership', async () => {
    // The roles that clusters have from the start get their rules from a controller, which does not run here.
    await bed.running.objects.create(Roles, {
      metadata: { name: 'config-reader' },
      spec: { scope: 'project', rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }] },
    })
    await bed.running.objects.create(Projects, {
      metadata: { name: 'p-web' },
      spec: { cluster: id, displayName: 'Web', namespaces: ['default'] },
    })
    const path = '/api/v1/namespaces/default/configmaps'
    const member = await addMember({ role: 'config-reader', user: jane.name, project: 'p-web' })
    await eventually('jane may read', async () => (await direct(token, 'GET', path)).status === 200)
    await bed.request('DELETE', `/v3/clusters/${id}/members/${member}`, { token: bed.administrator })
    await eventually('jane may not read any more', async () => (await direct(token, 'GET', path)).status === 403)
  })

  it('refuses wrong secrets, sessions, read-only tokens, and tokens for all or other clusters', async () => {
    const wrong = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`
    await addOtherMember()
    const bound = { cluster: id }
    const refused = {
      wrong,
      unbound: (await tokenOf(jane.token, {})).text,
      other: (await tokenOf(jane.token, { cluster: otherId })).text,
      readOnly: (await tokenOf(jane.token, { ...bound, readOnly: true })).text,
      session: await sessionOf('jane'),
    }
    // It is made last: when it is there, the others would be there too.
    const last = (await tokenOf(jane.token, bound)).text
    await eventually('the last token is accepted', () => isAccepted(last))
    for (const [what, text] of Object.entries(refused)) {
      assert.ok(text.startsWith('hk_'), what)
      assert.equal((await direct(text, 'GET', '/api')).status, 401, what)
      assert.deepEqual(await statusOf(text), { authenticated: false }, what)
    }
    assert.deepEqual(await statusOf(''), { authenticated: false })
    assert.deepEqual(await statusOf('not ours'), { authenticated: false })
  })

  async function addOtherMember(): Promise<void> {
    const body = { role: 'cluster-member', user: jane.name }
    await bed.request('POST', `/v3/clusters/${otherId}/members`, { token: bed.administrator, body })
  }

  async function sessionOf(username: string): Promise<string> {
    const body = { username, password: 'correct horse battery staple' }
    const answer = await bed.request('POST', '/v3-public/login', { body })
    const [, found = ''] = /(hk_[^;"]+)/.exec(String(answer.headers['set-cookie'])) ?? []
    return found
  }

  it('stores the hash of a token only in a Secret', async () => {
    const { items: secrets } = await client.list(Secrets, { namespace: AUTH_NAMESPACE })
    const [, name = '', secret = ''] = token.split('_')
    const found = secrets.find(({ metadata }) => metadata.name === name)
    assert.match(Buffer.from(found?.data?.['hash'] ?? '', 'base64').toString(), /^sha256:[\da-f]{64}$/)
    const { items: tokens } = await client.list(ClusterAuthTokens, { namespace: AUTH_NAMESPACE })
    const names = (objects: readonly KubeObject[]): Set<unknown> =>
      new Set(objects.map(({ metadata }) => metadata.name))
    assert.deepEqual(names(tokens), names(secrets))
    assert.ok(!JSON.stringify([tokens, secrets]).includes(secret))
    assert.ok(!/[\da-f]{64}/.test(JSON.stringify(tokens.map((one) => ({ ...one, metadata: {} })))))
  })

  it('refuses expired tokens, and deletes them', async () => {
    const { text, name } = await tokenOf(jane.token, { cluster: id, ttlSeconds: 3 })
    await eventually('the token is accepted', () => isAccepted(text))
    await eventually('the token is refused', async () => !(await isAccepted(text)))
    await eventually('the object is gone', async () => {
      const { items } = await client.list(ClusterAuthTokens, { namespace: AUTH_NAMESPACE })
      return items.every(({ metadata }) => metadata.name !== name)
    })
  })

  /** Of a deleted token, a disabled user and a user without a role. */
  const ended: string[] = []
  it('refuses deleted tokens, disabled users and users without a role', async () => {
    const deleted = await tokenOf(jane.token, { cluster: id })
    const ofEve = await tokenOf(eve.token, { cluster: id })
    const { name: paul, token: paulToken } = await bed.createUser('paul')
    const member = await addMember({ role: 'cluster-read-only', user: paul })
    const ofPaul = await tokenOf(paulToken, { cluster: id })
    ended.push(deleted.text, ofEve.text, ofPaul.text)
    for (const text of ended) await eventually('the token is accepted', () => isAccepted(text))
    await bed.request('DELETE', `/v3/tokens/${deleted.name}`, { token: jane.token })
    const body = { disabled: true }
    const disabled = await bed.request('PATCH', `/v3/users/${eve.name}`, { token: bed.administrator, body })
    assert.equal(disabled.status, 200, disabled.text)
    await bed.request('DELETE', `/v3/clusters/${id}/members/${member}`, { token: bed.administrator })
    for (const text of ended) await eventually('the token is refused', async () => !(await isAccepted(text)))
    const { items } = await client.list(ClusterUserAttributes, { namespace: AUTH_NAMESPACE })
    assert.deepEqual(
      items.map(({ metadata }) => metadata.name),
      [jane.name],
    )
  })

  it('deletes all tokens when the endpoint is disabled', async () => {
    await setEndpoint({ enabled: false })
    await eventually('the token is refused', async () => !(await isAccepted(token)))
    await eventually('the condition is False', () => conditionOf(id, 'TokensApplied') === 'False')
    const { items } = await client.list(Secrets, { namespace: AUTH_NAMESPACE })
    assert.deepEqual(items, [])
    await setEndpoint({ enabled: true })
    await eventually('the token is accepted again', () => isAccepted(token))
  })

  it('answers malformed requests with an error', async () => {
    const base = `http://127.0.0.1:${authPort}`
    assert.equal((await review('{')).status, 400)
    assert.equal((await review({ apiVersion: 'v1', kind: 'Pod' })).status, 400)
    assert.equal((await review('x'.repeat((64 << 10) + 1))).status, 413)
    assert.equal((await fetch(`${base}/v1/authenticate`)).status, 405)
    assert.equal((await fetch(`${base}/v1/other`, { method: 'POST' })).status, 404)
    assert.equal((await fetch(`${base}/healthcheck`)).status, 200)
  })

  it('accepts tokens while the management server is away', async () => {
    await bed[Symbol.asyncDispose]()
    assert.equal((await direct(token, 'GET', '/api/v1/nodes')).status, 200)
    assert.equal((await direct(token, 'GET', '/api/v1/secrets')).status, 403)
    assert.equal(ended.length, 3)
    for (const text of ended) assert.equal((await direct(text, 'GET', '/api')).status, 401)
  })

  it('serves kubectl by the second context of the kubeconfig while the management server is away', async () => {
    const args = (...more: string[]): string[] => ['kubectl', `--kubeconfig=${userFile}`, ...more]
    const second = `--context=shop-${new URL(plane.url).host}`
    const options = { env: { ...process.env, HOME: folder } }
    const run = promisify(execFile)
    assert.match((await run(HYPERKUBE, args(second, 'auth', 'whoami'), options)).stdout, new RegExp(jane.name))
    assert.equal((await run(HYPERKUBE, args(second, 'get', 'nodes'), options)).stderr, 'No resources found\n')
    await assert.rejects(run(HYPERKUBE, args(second, 'get', 'secrets', '-A'), options), /Forbidden/)
    await assert.rejects(run(HYPERKUBE, args('get', 'nodes'), options), /refused/)
  })

  it('answers from its cache file while the API server is away', async () => {
    await eventually('the file has the token', () => existsSync(cacheFile) && isCached(token))
    await stopAuth()
    await plane.stop()
    assert.equal(statSync(cacheFile).mode & 0o777, 0o600)
    assert.ok(!readFileSync(cacheFile, 'utf8').includes(token.split('_')[2] ?? '-'))
    stopAuth = startAuth()
    await eventually('it is ready', () => fetch(`http://127.0.0.1:${authPort}/healthcheck`).then(isOk, () => false))
    const groups = ['hk:cluster:cluster-member', 'system:authenticated']
    assert.deepEqual(await statusOf(token), { authenticated: true, user: { username: jane.name, groups } })
    for (const text of [...ended, `${token.slice(0, -4)}AAAA`])
      assert.deepEqual(await statusOf(text), { authenticated: false })
  })

  function isCached(text: string): boolean {
    return readFileSync(cacheFile, 'utf8').includes(`"${text.split('_')[1]}"`)
  }
})

function isOk({ ok }: Response): boolean {
  return ok
}

function read(path: string): Promise<string> {
  return readFile(path, 'utf8')
}

async function freePort(): Promise<number> {
  const listener = await bind({ host: '127.0.0.1', port: 0 })
  listener.close()
  return 'port' in listener.address ? listener.address.port : 0
}

function webhookConfig(port: number): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'auth', cluster: { server: `http://127.0.0.1:${port}/v1/authenticate` } }],
    users: [{ name: 'auth' }],
    contexts: [{ name: 'auth', context: { cluster: 'auth', user: 'auth' } }],
    'current-context': 'auth',
  })
}
