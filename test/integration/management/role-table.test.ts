/**
 * Tests every route of the management server for users with each built-in role against a table. A role or route
 * without a row fails.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { BUILT_IN_ROLES } from '#management/access/built-in-roles.ts'
import { Members, Projects } from '#management/kinds/access.ts'

import type { ManagementBed } from './bed.ts'
import { type EchoBed, startEchoBed } from './downstream.ts'

/** Tests of their own have these: they end the session, or the cluster. */
const ELSEWHERE: ReadonlySet<string> = new Set(['POST /v3/logout', 'DELETE /v3/clusters/:cluster'])

const CLUSTER_ROLES = Object.keys(BUILT_IN_ROLES).filter((name) => BUILT_IN_ROLES[name]?.scope === 'cluster')

/**
 * For each route the status for roles of the server, and for roles in the cluster or in one of its projects; then the roles
 * with another status. Bodies are empty and names unknown: 400 and 404 are
 * responses to callers who may use the route.
 */
const TABLE = `
GET /v3/me                                                200 200
POST /v3/me/password                                      400 400
GET /v3/tokens                                            200 200
POST /v3/tokens                                           201 201
DELETE /v3/tokens/:name                                   404 404
GET /v3/users                                             403 403  200:administrator,users-manage
POST /v3/users                                            403 403  400:administrator,users-manage
PATCH /v3/users/:name                                     403 403  404:administrator,users-manage
DELETE /v3/users/:name                                    403 403  404:administrator,users-manage
GET /v3/roles                                             200 200
POST /v3/roles                                            403 403  400:administrator,roles-manage
GET /v3/roles/:role                                       404 404
PATCH /v3/roles/:role                                     403 403  404:administrator,roles-manage
DELETE /v3/roles/:role                                    403 403  404:administrator,roles-manage
GET /v3/members                                           403 403  200:administrator,users-manage
POST /v3/members                                          403 403  400:administrator,users-manage
DELETE /v3/members/:member                                403 403  404:administrator,users-manage
GET /v3/clusters                                          200 200
POST /v3/clusters                                         403 403  400:administrator,clusters-create
GET /v3/clusters/:cluster                                 404 200  200:administrator
POST /v3/clusters/:cluster/registration                   404 403  201:administrator,cluster-owner
POST /v3/clusters/:cluster/kubeconfig                     404 200  200:administrator
GET /v3/clusters/:cluster/members                         404 200  200:administrator
POST /v3/clusters/:cluster/members                        404 403  400:administrator,cluster-owner,members-manage
DELETE /v3/clusters/:cluster/members/:member              404 403  404:administrator,cluster-owner,members-manage
GET /v3/clusters/:cluster/projects                        404 200  200:administrator
POST /v3/clusters/:cluster/projects                       404 403  400:administrator,cluster-owner,projects-create
PATCH /v3/clusters/:cluster/projects/:project             404 403  404:administrator,cluster-owner
DELETE /v3/clusters/:cluster/projects/:project            404 403  404:administrator,cluster-owner
POST /v3/clusters/:cluster/projects/:project/namespaces   404 403  404:administrator,cluster-owner
POST /v3/clusters/:cluster/namespaces/:namespace/move     404 403  400:administrator,cluster-owner
POST /v3/clusters/:cluster/start                          404 403  400:administrator,cluster-owner
POST /v3/clusters/:cluster/stop                           404 403  400:administrator,cluster-owner
POST /v3/clusters/:cluster/fork                           404 403  400:administrator,cluster-owner
GET /v3/clusters/:cluster/machines                        404 403  200:administrator,${CLUSTER_ROLES.join(',')}
POST /v3/clusters/:cluster/machines/registration          404 403  201:administrator,cluster-owner
DELETE /v3/clusters/:cluster/machines/:machine            404 403  404:administrator,cluster-owner
GET /v3/clusters/:cluster/build                           404 403  400:administrator,cluster-owner
PUT /v3/clusters/:cluster/build                           404 403  400:administrator,cluster-owner
POST /v3/clusters/:cluster/files                          404 403  400:administrator,cluster-owner
POST /v3/clusters/:cluster/host-keys                      404 403  400:administrator,cluster-owner
GET /v3/clusters/:cluster/snapshots                       404 403  400:administrator,cluster-owner
GET /v3/cluster-file-schema                               200 200
GET /v3/cluster-templates                                 200 200
POST /v3/cluster-templates                                403 403  400:administrator,clustertemplates-create
GET /v3/cluster-templates/:template                       404 404
DELETE /v3/cluster-templates/:template                    404 404
GET /v3/clusters/:cluster/operations                      404 403  400:administrator,cluster-owner
POST /v3/clusters/:cluster/operations                     404 403  400:administrator,cluster-owner
GET /v3/clusters/:cluster/operations/:operation           404 403  400:administrator,cluster-owner
POST /v3/clusters/:cluster/operations/:operation/approve  404 403  400:administrator,cluster-owner
POST /v3/clusters/:cluster/operations/:operation/cancel   404 403  400:administrator,cluster-owner
POST /v3/clusters/:cluster/operations/:operation/retry    404 403  400:administrator,cluster-owner
GET /v3/clusters/:cluster/operations/:operation/log       404 403  400:administrator,cluster-owner
`

interface Row {
  readonly route: string
  readonly global: number
  readonly inside: number
  /** By role. */
  readonly others: ReadonlyMap<string, number>
}

const ROWS: readonly Row[] = TABLE.trim()
  .split('\n')
  .map((line) => {
    const [method = '', path = '', global = '', inside = '', exceptions = ''] = line.split(/ +/)
    const [status = '', roles = ''] = exceptions.split(':')
    const others = roles.split(',').flatMap((role) => (role === '' ? [] : [[role, Number(status)] as const]))
    return { route: `${method} ${path}`, global: Number(global), inside: Number(inside), others: new Map(others) }
  })

describe('a user of the management server with one role', () => {
  let site: EchoBed
  let bed: ManagementBed
  let cluster = ''
  let visitor: { readonly name: string; readonly token: string }

  before(async () => {
    site = await startEchoBed()
    ;({ bed, id: cluster } = site)
    const spec = { cluster, displayName: 'P', namespaces: ['web'] }
    await bed.running.objects.create(Projects, { metadata: { name: 'p' }, spec })
    visitor = await bed.createUser('visitor')
  })
  after(() => site[Symbol.asyncDispose]())

  async function statusOf(route: string): Promise<number> {
    const [method = '', path = ''] = route.split(' ')
    const target = path.replace(':cluster', cluster).replaceAll(/:\w+/g, 'unknown')
    const body = method === 'POST' || method === 'PATCH' ? { body: {} } : {}
    return (await bed.request(method, target, { token: visitor.token, ...body })).status
  }

  it('has a row for every route below /v3', () => {
    const routes = bed.running.routes.filter(({ path, access }) => access === 'person' && path.startsWith('/v3/'))
    const wanted = routes.map(({ method, path }) => `${method} ${path}`).filter((route) => !ELSEWHERE.has(route))
    assert.deepEqual(new Set(ROWS.map(({ route }) => route)), new Set(wanted))
  })

  for (const [role, { scope }] of Object.entries(BUILT_IN_ROLES)) {
    it(`gets the listed status for every route with role ${role}`, async () => {
      const place = { global: {}, cluster: { cluster }, project: { project: 'p' } }[scope]
      const spec = { role, user: visitor.name, ...place }
      const member = await bed.running.objects.create(Members, { metadata: { generateName: 'm-' }, spec })
      const found: string[] = []
      for (const { route } of ROWS) found.push(`${route} ${await statusOf(route)}`)
      await bed.running.objects.delete(Members, member.metadata.name ?? '')
      const wanted = ROWS.map(
        ({ route, global, inside, others }) => `${route} ${others.get(role) ?? (scope === 'global' ? global : inside)}`,
      )
      assert.deepEqual(found, wanted)
    })
  }

  it('gets the status of a user without cluster roles for routes of a cluster', async () => {
    for (const { route, global } of ROWS.filter((row) => row.route.includes(':cluster')))
      assert.deepEqual([route, await statusOf(route)], [route, global])
  })
})
