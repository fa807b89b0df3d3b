/** The pages of a management server with some clusters, people and a cluster that was built. */
import { realClock, sleep } from '#lib/clock.ts'
import { type ClusterStatus, Clusters } from '#management/kinds/cluster.ts'
import { clusterText, simulatedBuild, withoutKubeconfig } from '#provision/simulated-build.fixture.ts'
import { SimulatedSite } from '#provision/simulated-site.fixture.ts'

import { eventually } from '../../management/bed.ts'
import { importCluster } from '../../management/downstream.ts'
import { addCluster } from '../people-bed.ts'
import { type ServerBed, startServerBed } from '../server-bed.ts'
import { type Take, viewsIn } from './camera.ts'

const TIME = '2026-01-01T00:00:00Z'

/** The path is below `/ui`. */
type Address = readonly [name: string, path: string]

interface Fleet {
  /** Connected. */
  readonly prod: string
  readonly built: string
  readonly jane: string
}

export async function takeServer(take: Take): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const build = simulatedBuild(new SimulatedSite([{ name: '1', roles: [] }]))
  const site = {
    openMachines: build.openMachines,
    openApi: withoutKubeconfig(build.openApi),
    own: build.own,
    uid: () => Promise.resolve(`uid-${realClock.now()}`),
  }
  const bed = closing.use(await startServerBed(undefined, { site }))
  const fleet = await makeFleet(bed, closing)
  await takeViews(take, bed, fleet)
  await takeDialogs(take, bed, fleet)
  const stranger = await bed.openAs('ann', '/')
  await take('24-stranger', stranger, () => stranger.getByText('You have no clusters').waitFor())
}

async function makeFleet(bed: ServerBed, closing: AsyncDisposableStack): Promise<Fleet> {
  const { server } = bed
  const { name: jane } = await server.createUser('jane')
  await server.createUser('ann')
  const managed = closing.use(await addCluster(server, 'prod'))
  const token = server.administrator
  await server.request('POST', `/v3/clusters/${managed.id}/members`, {
    token,
    body: { role: 'cluster-member', user: jane },
  })
  await server.request('POST', '/v3/members', { token, body: { role: 'users-manage', user: jane } })
  const { id: away } = await importCluster(server, 'warehouse')
  const { id: late } = await importCluster(server, 'a cluster with quite a long display name for a card')
  const status: ClusterStatus = {
    version: 'v1.34.1',
    nodes: { total: 12, ready: 11 },
    capacity: { cpu: '96', memory: '400Gi' },
    conditions: [
      { type: 'Connected', status: 'False', reason: 'X', message: 'the tunnel broke off', lastTransitionTime: TIME },
    ],
    agent: { connectedAt: TIME, disconnectedAt: TIME, version: '1.0.0' },
  }
  await server.running.objects.change(Clusters, away, (now) => ({ ...now, status }), { subresource: 'status' })
  void late
  const file = clusterText({ '1': ['etcd', 'controlplane', 'worker'] })
  const body = { displayName: 'factory', source: 'built', file, approval: 'Automatic' }
  const made = await server.request('POST', '/v3/clusters', { token, body })
  const built = String(made.body['cluster'].metadata.name)
  await eventually('the cluster is built', () => {
    return server.running.objects.get(Clusters, built)?.status?.build?.appliedAt !== undefined
  })
  return { prod: managed.id, built, jane }
}

async function takeViews(take: Take, bed: ServerBed, { prod, built, jane }: Fleet): Promise<void> {
  const { page } = bed
  const tabs = ['', 'operations', 'file', 'machines', 'snapshots'].map((tab): Address => [
    `22-built-${tab === '' ? 'overview' : tab}`,
    `/clusters/${built}${tab === '' ? '' : `?tab=${tab}`}`,
  ])
  const views = (await viewsIn(page)).map((name): Address => [`21-${name}`, `/${name}`])
  const all: readonly Address[] = [
    ['20-clusters', '/'],
    ...views,
    ['21-search-found', '/search?q=kube'],
    ['21-user', `/users/${jane}`],
    ['21-role', '/roles/cluster-member'],
    ['21-members-cluster', `/members/${prod}`],
    ['21-projects-cluster', `/projects/${prod}`],
    ['21-nothing', '/nonsense'],
    ['22-cluster', `/clusters/${prod}`],
    ...tabs,
    ['22-inside', `/c/${prod}`],
    ['22-inside-list', `/c/${prod}/core/v1/configmaps`],
  ]
  for (const [name, path] of all) {
    await take(name, page, async () => {
      await bed.open(path)
      await page.getByRole('navigation', { name: /Pages|Kinds/ }).waitFor()
      await sleep(realClock, 1500)
    })
  }
}

async function takeDialogs(take: Take, bed: ServerBed, { prod, built }: Fleet): Promise<void> {
  const { page } = bed
  const dialogs: readonly (readonly [name: string, path: string, button: string])[] = [
    ['import', '/', 'Import a cluster …'],
    ['up', '/', 'Start a cluster here …'],
    ['user', '/users', 'Create a user'],
    ['role', '/roles', 'Create a role'],
    ['member', `/members/${prod}`, 'Add a member'],
    ['project', `/projects/${prod}`, 'Create a project'],
    ['token', '/tokens', 'Create a token'],
    ['agent', `/clusters/${prod}`, 'Install agent …'],
    ['remove', `/clusters/${prod}`, 'Remove …'],
    ['endpoint', `/clusters/${prod}`, 'Change …'],
    ['rotate', `/clusters/${built}`, 'Rotate …'],
    ['machine', `/clusters/${built}?tab=machines`, 'Connect a machine …'],
  ]
  for (const [name, path, button] of dialogs) {
    await take(`23-dialog-${name}`, page, async () => {
      await bed.open(path)
      await page.getByRole('button', { name: button }).first().click()
      await page.getByRole('dialog').waitFor()
      await sleep(realClock, 300)
    })
  }
  await take('23-login', page, async () => {
    await page.context().clearCookies()
    await bed.open('/')
    await page.getByRole('button', { name: 'Log in' }).waitFor()
  })
}
