/**
 * Tests every route of the management server with every kind of caller against a table. A route without a row fails.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Projects } from '#management/kinds/access.ts'

import { type ManagementBed, PASSWORD, startManagementBed } from './bed.ts'
import { connected, type EchoCluster, importCluster, startEchoCluster } from './downstream.ts'

/** The columns of the table. `of…` are tokens of the administrator for one cluster; `cookie` sends no header of our pages. */
const CALLERS = [
  'nobody',
  'user',
  'project',
  'member',
  'owner',
  'admin',
  'ofOther',
  'ofThis',
  'readOnly',
  'cookie',
] as const
type Caller = (typeof CALLERS)[number]

/** Deletions and log-outs are the last. Bodies are empty: 400 is the response to callers who may use the route. */
const TABLE = `
route                                             nobody user project member owner admin ofOther ofThis readOnly cookie
GET /livez                                        200    200  200     200    200   200   200     200    200      200
GET /healthz                                      200    200  200     200    200   200   200     200    200      200
GET /readyz                                       200    200  200     200    200   200   200     200    200      200
* /                                               302    302  302     302    302   302   302     302    302      302
* /ui/session                                     200    200  200     200    200   200   200     200    200      200
* /ui/*                                           200    200  200     200    200   200   200     200    200      200
GET /ping                                         200    200  200     200    200   200   200     200    200      200
GET /v3/settings/cacerts                          200    200  200     200    200   200   200     200    200      200
GET /v3/settings/server-version                   200    200  200     200    200   200   200     200    200      200
GET /v3-public/providers                          200    200  200     200    200   200   200     200    200      200
POST /v3-public/login                             400    400  400     400    400   400   400     400    400      400
POST /v3-public/first-login                       400    400  400     400    400   400   400     400    400      400
GET /first-login                                  401    401  401     401    401   401   401     401    401      401
POST /first-login                                 400    400  400     400    400   400   400     400    400      400
GET /v3-public/oidc/:provider/login               404    404  404     404    404   404   404     404    404      404
GET /v3-public/oidc/:provider/callback            401    401  401     401    401   401   401     401    401      401
GET /metrics                                      401    403  403     403    403   200   403     403    200      200
GET /v3/replicas/connect                          401    401  401     401    401   401   401     401    401      401
GET /v3/connect                                   400    400  400     400    400   400   400     400    400      400
GET /v3/connect/register                          400    400  400     400    400   400   400     400    400      400
GET /v3/connect/config                            401    401  401     401    401   401   401     401    401      401
GET /v3/import/:file                              404    404  404     404    404   404   404     404    404      404
GET /v3/me                                        401    200  200     200    200   200   403     403    200      200
POST /v3/me/password                              401    400  400     400    400   400   403     403    403      403
GET /v3/tokens                                    401    200  200     200    200   200   403     403    200      200
POST /v3/tokens                                   401    201  201     201    201   201   403     403    403      403
DELETE /v3/tokens/:name                           401    404  404     404    404   404   403     403    403      403
GET /v3/users                                     401    403  403     403    403   200   403     403    200      200
POST /v3/users                                    401    403  403     403    403   400   403     403    403      403
PATCH /v3/users/:name                             401    403  403     403    403   404   403     403    403      403
DELETE /v3/users/:name                            401    403  403     403    403   404   403     403    403      403
GET /v3/roles                                     401    200  200     200    200   200   403     403    200      200
POST /v3/roles                                    401    403  403     403    403   400   403     403    403      403
GET /v3/roles/:role                               401    404  404     404    404   404   403     403    404      404
PATCH /v3/roles/:role                             401    403  403     403    403   404   403     403    403      403
DELETE /v3/roles/:role                            401    403  403     403    403   404   403     403    403      403
GET /v3/members                                   401    403  403     403    403   200   403     403    200      200
POST /v3/members                                  401    403  403     403    403   400   403     403    403      403
DELETE /v3/members/:member                        401    403  403     403    403   404   403     403    403      403
GET /v3/clusters                                  401    200  200     200    200   200   403     403    200      200
POST /v3/clusters                                 401    403  403     403    403   400   403     403    403      403
GET /v3/clusters/:cluster                         401    404  200     200    200   200   403     403    200      200
POST /v3/clusters/:cluster/registration           401    404  403     403    201   201   403     403    403      403
POST /v3/clusters/:cluster/kubeconfig             401    404  200     200    200   200   403     403    403      403
GET /v3/clusters/:cluster/members                 401    404  200     200    200   200   403     403    200      200
POST /v3/clusters/:cluster/members                401    404  403     403    400   400   403     403    403      403
DELETE /v3/clusters/:cluster/members/:member      401    404  403     403    404   404   403     403    403      403
GET /v3/clusters/:cluster/projects                401    404  200     200    200   200   403     403    200      200
POST /v3/clusters/:cluster/projects               401    404  403     403    400   400   403     403    403      403
PATCH /v3/clusters/:cluster/projects/:project     401    404  403     403    404   404   403     403    403      403
DELETE /v3/clusters/:cluster/projects/:project    401    404  403     403    404   404   403     403    403      403
POST /v3/clusters/:cluster/start                  401    404  403     403    400   400   403     403    403      403
POST /v3/clusters/:cluster/stop                   401    404  403     403    400   400   403     403    403      403
POST /v3/clusters/:cluster/fork                   401    404  403     403    400   400   403     403    403      403
GET /v3/clusters/:cluster/machines                401    404  403     200    200   200   403     403    200      200
POST /v3/clusters/:cluster/machines/registration  401    404  403     403    201   201   403     403    403      403
DELETE /v3/clusters/:cluster/machines/:machine    401    404  403     403    404   404   403     403    403      403
POST /v3/clusters/:cluster/projects/:project/namespaces   401 404 403 403 404 404 403 403 403 403
POST /v3/clusters/:cluster/namespaces/:namespace/move     401 404 403 403 400 400 403 403 403 403
GET /v3/cluster-file-schema                       401    200  200     200    200   200   403     403    200      200
GET /v3/cluster-templates                         401    200  200     200    200   200   403     403    200      200
POST /v3/cluster-templates                        401    403  403     403    403   400   403     403    403      403
GET /v3/cluster-templates/:template               401    404  404     404    404   404   403     403    404      404
DELETE /v3/cluster-templates/:template            401    404  404     404    404   404   403     403    403      403
GET /v3/clusters/:cluster/build                   401    404  403     403    400   400   403     403    400      400
PUT /v3/clusters/:cluster/build                   401    404  403     403    400   400   403     403    403      403
POST /v3/clusters/:cluster/files                  401    404  403     403    400   400   403     403    403      403
POST /v3/clusters/:cluster/host-keys              401    404  403     403    400   400   403     403    403      403
GET /v3/clusters/:cluster/snapshots               401    404  403     403    400   400   403     403    400      400
GET /v3/clusters/:cluster/operations              401    404  403     403    400   400   403     403    400      400
POST /v3/clusters/:cluster/operations             401    404  403     403    400   400   403     403    403      403
GET /v3/clusters/:cluster/operations/:operation       401    404  403     403    400   400   403     403    400      400
POST /v3/clusters/:cluster/operations/:operation/approve 401    404  403     403    400   400   403     403    403      403
POST /v3/clusters/:cluster/operations/:operation/cancel 401    404  403     403    400   400   403     403    403      403
POST /v3/clusters/:cluster/operations/:operation/retry 401    404  403     403    400   400   403     403    403      403
GET /v3/clusters/:cluster/operations/:operation/log   401    404  403     403    400   400   403     403    400      400
* /k8s/clusters/:cluster/*                        401    404  200     200    200   200   403     200    200      200
* /api                                            401    200  200     200    200   200   503     200    200      200
* /api/*                                          401    200  200     200    200   200   503     200    200      200
* /apis                                           401    200  200     200    200   200   503     200    200      200
* /apis/*                                         401    200  200     200    200   200   503     200    200      200
* /version                                        401    200  200     200    200   200   503     200    200      200
* /openapi/*                                      401    200  200     200    200   200   503     200    200      200
DELETE /v3/clusters/:cluster                      401    404  403     403    200   200   403     403    403      403
POST /v3/logout                                   401    204  204     204    204   204   403     403    403      403
`

interface Row {
  readonly method: string
  readonly path: string
  readonly statuses: readonly number[]
}

const ROWS: readonly Row[] = TABLE.trim()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [method = '', path = '', ...statuses] = line.trim().split(/ +/)
    return { method, path, statuses: statuses.map(Number) }
  })

/** A path for each wildcard route. */
const BELOW: Readonly<Record<string, string>> = {
  '/api/*': 'v1',
  '/apis/*': 'apps',
  '/openapi/*': 'v3',
  '/k8s/clusters/:cluster/*': 'version',
  '/ui/*': 'clusters',
}

describe('routes of the management server', () => {
  let bed: ManagementBed
  let echo: EchoCluster
  const clusters: string[] = []
  const headers = new Map<Caller, Readonly<Record<string, string>>>()

  before(async () => {
    bed = await startManagementBed()
    echo = await startEchoCluster()
    echo.answer = (_request, response) => void response.writeHead(200).end('{}')
    for (const name of ['this', 'other']) {
      const { id, token } = await importCluster(bed, name)
      clusters.push(id)
      if (name === 'other') continue
      bed.runAgent(echo.kubeconfig, token)
      await connected(bed, id)
    }
    await createCallers()
  })
  after(async () => {
    await bed[Symbol.asyncDispose]()
    await echo[Symbol.asyncDispose]()
  })

  async function createCallers(): Promise<void> {
    const [cluster = '', other = ''] = clusters
    const spec = { cluster, displayName: 'P', namespaces: ['web'] }
    await bed.running.objects.create(Projects, { metadata: { name: 'p' }, spec })
    const roles = {
      user: undefined,
      project: { role: 'project-member', project: 'p' },
      member: { role: 'cluster-member' },
      owner: { role: 'cluster-owner' },
    }
    for (const [caller, role] of Object.entries(roles)) {
      const { name, token } = await bed.createUser(caller)
      headers.set(caller as Caller, { authorization: `Bearer ${token}` })
      const body = { ...role, user: name }
      const path = `/v3/clusters/${cluster}/members`
      if (role !== undefined)
        assert.equal((await bed.request('POST', path, { token: bed.administrator, body })).status, 201)
    }
    const plans = { admin: {}, ofOther: { cluster: other }, ofThis: { cluster }, readOnly: { readOnly: true } }
    for (const [caller, body] of Object.entries(plans)) {
      const made = await bed.request('POST', '/v3/tokens', { token: bed.administrator, body })
      headers.set(caller as Caller, { authorization: `Bearer ${made.body['token']}` })
    }
    const login = await bed.request('POST', '/v3-public/login', { body: { username: 'admin', password: PASSWORD } })
    const [cookie = ''] = String([login.headers['set-cookie']].flat()[0]).split(';')
    headers.set('cookie', { cookie })
  }

  async function statusFor(caller: Caller, method: string, path: string): Promise<number> {
    // Otherwise the owner would leave nothing to delete.
    const cluster = clusters[method === 'DELETE' && caller === 'admin' ? 1 : 0] ?? ''
    const target = path
      .replace('*', BELOW[path] ?? '')
      .replace(':cluster', cluster)
      .replaceAll(/:\w+/g, 'unknown')
    const verb = method === '*' ? 'GET' : method
    const body = verb === 'POST' || verb === 'PATCH' ? { body: {} } : {}
    return (await bed.request(verb, target, { headers: headers.get(caller) ?? {}, ...body })).status
  }

  it('all have a row in the access table', () => {
    const wanted = bed.running.routes.map(({ method, path }) => `${method} ${path}`).toSorted()
    assert.deepEqual(ROWS.map(({ method, path }) => `${method} ${path}`).toSorted(), wanted)
  })

  it('respond to every kind of caller as in the table', async () => {
    const found: string[] = []
    for (const { method, path } of ROWS) {
      const statuses: number[] = []
      for (const caller of CALLERS) statuses.push(await statusFor(caller, method, path))
      found.push(`${method} ${path} ${statuses.join(' ')}`)
    }
    assert.deepEqual(
      found,
      ROWS.map(({ method, path, statuses }) => `${method} ${path} ${statuses.join(' ')}`),
    )
  })

  it('refuse users without credentials', () => {
    const closed = new Set(bed.running.routes.filter(({ access }) => access === 'person').map(({ path }) => path))
    const answered = ROWS.filter(({ path, statuses }) => closed.has(path) && statuses[0] !== 401)
    assert.deepEqual(answered, [])
  })
})
