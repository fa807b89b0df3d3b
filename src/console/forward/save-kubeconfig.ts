import { clusterPath } from '../api/cluster-paths.ts'
import { send } from '../api/request.ts'
import { saveText } from '../browser/save-text.ts'

interface NamedCluster {
  readonly metadata: { readonly name?: string }
  readonly spec: { readonly displayName: string }
}

/** Saves a kubeconfig of the user for a managed cluster as a file. */
export async function saveKubeconfig({ metadata, spec }: NamedCluster): Promise<void> {
  const response = await send(`${clusterPath(metadata.name ?? '')}/kubeconfig`, { method: 'POST', body: {} })
  saveText(`${spec.displayName}.kubeconfig`, await response.text(), 'application/yaml')
}
