/** `-k` and `kubectl kustomize`: the manifests that a kustomization stands for. */
import { resolve } from 'node:path'

import { buildKustomization } from '#kustomize/build.ts'
import { isRepository } from '#kustomize/loader.ts'

import { KubectlError } from './errors.ts'
import { readRemote } from './remote-manifest.ts'

export interface KustomizeOptions {
  readonly unrestricted?: boolean
  /** Resources stay in the order they came in: what `-k` does. */
  readonly keepOrder?: boolean
  readonly warn?: (text: string) => void
}

/** Throws KubectlError. */
export async function kustomizeText(path: string, cwd: string, options: KustomizeOptions = {}): Promise<string> {
  const { unrestricted = false, keepOrder = true, warn = () => undefined } = options
  const folder = isRepository(path) ? path : resolve(cwd, path)
  return buildKustomization(folder, { unrestricted, keepOrder, warn, fetch: readRemote }).catch((error: unknown) => {
    throw new KubectlError((error as Error).message, { cause: error })
  })
}
