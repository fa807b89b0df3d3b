/** `-k`: the manifests that a kustomization stands for. */
import { KubectlError } from './errors.ts'

/** Throws KubectlError. */
export async function kustomizeText(path: string, _cwd: string): Promise<string> {
  throw new KubectlError(`cannot read "${path}": kustomize is not built yet`)
}
