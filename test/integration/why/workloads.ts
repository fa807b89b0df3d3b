/** Workloads of tests of `kubectl why`. */
import type { Deployment } from '#apis/apps/v1.ts'
import { type Pod, Pods } from '#apis/core/v1.ts'
import type { TestCluster } from '#testing/cluster.ts'

import { namespace as usual } from './bed.ts'

interface WorkloadOptions {
  readonly replicas?: number
  readonly container?: object
  readonly namespace?: string
}

export function deploymentOf(name: string, options: WorkloadOptions = {}): Deployment {
  const { replicas = 1, container = {}, namespace = usual } = options
  const containers = [{ name: 'app', image: 'app:1', ...container }]
  return {
    metadata: { namespace, name },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers } },
    },
  } as unknown as Deployment
}

export async function podsOf({ client }: TestCluster, app: string, namespace: string = usual): Promise<readonly Pod[]> {
  return (await client.list(Pods, { namespace, labelSelector: `app=${app}` })).items
}

export async function nameOfPod(cluster: TestCluster, app: string, namespace: string = usual): Promise<string> {
  const [pod] = await podsOf(cluster, app, namespace)
  return pod?.metadata.name ?? ''
}
