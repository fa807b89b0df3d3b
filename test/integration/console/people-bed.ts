/** Pages of users who have logged in to a management server, and a cluster that it manages. */
import type { Page } from 'playwright-core'

import { ClusterRoleBindings } from '#apis/rbac/v1.ts'
import { ownerBinding } from '#management/clusters/access-objects.ts'
import { startCluster, type TestCluster } from '#testing/public-api.ts'

import { eventually, type ManagementBed } from '../management/bed.ts'
import { violationsOf } from './browser-bed.ts'
import type { ServerBed } from './server-bed.ts'

export interface UserPage {
  readonly page: Page
  /** Shows the page of a path below `/ui`. */
  open(path: string): Promise<void>
  /** The bodies of all responses with data of the server. */
  bodies(): Promise<readonly string[]>
  /** The violations that axe finds in both themes, each with the first element. */
  violations(): Promise<readonly string[]>
}

export async function openUserPage(bed: ServerBed, username: string): Promise<UserPage> {
  const page = await bed.openAs(username, '/settings')
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  const bodies: Promise<string>[] = []
  page.on('response', (response) => {
    if (!/^\/(?:v3|k8s)/.test(new URL(response.url()).pathname)) return
    // The browser no longer has those of the page before.
    bodies.push(response.text().catch(() => ''))
  })
  return {
    page,
    bodies: () => Promise.all(bodies),
    open: (path) => bed.show(page, path),
    violations: async () => [...(await violationsOf(page, 'light')), ...(await violationsOf(page, 'dark'))],
  }
}

export interface ManagedCluster extends AsyncDisposable {
  /** The name that the server chose. */
  readonly id: string
  readonly cluster: TestCluster
}

/** Starts a cluster, imports it, and connects its agent. */
export async function addCluster(server: ManagementBed, displayName: string): Promise<ManagedCluster> {
  const cluster = await startCluster()
  const token = server.administrator
  const { body } = await server.request('POST', '/v3/clusters', { token, body: { displayName } })
  const id = String(body['cluster'].metadata.name)
  // The manifest of the agent creates this binding.
  await cluster.client.create(ClusterRoleBindings, ownerBinding())
  const stopAgent = server.runAgent(cluster.kubeconfig, String(body['token']))
  await eventually('the cluster has its roles and projects', async () => {
    const { body: found } = await server.request('GET', `/v3/clusters/${id}`, { token })
    const conditions = (found['status']?.conditions ?? []) as readonly { type: string; status: string }[]
    return ['Ready', 'RolesApplied'].every((type) =>
      conditions.some((one) => one.type === type && one.status === 'True'),
    )
  })
  return {
    id,
    cluster,
    async [Symbol.asyncDispose]() {
      await stopAgent()
      await cluster.stop()
    },
  }
}
