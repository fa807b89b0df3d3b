/** Builds the manifests of a kustomization, for `-k` and `kubectl kustomize`. */
import { resolve } from 'node:path'

import { buildKustomization } from '#kustomize/build.ts'
import { isRepository } from '#kustomize/loader.ts'
import type { ProgramContext } from '#lib/program.ts'

import { KubectlError } from '../errors.ts'
import { logLine } from '../klog.ts'
import { readRemote } from './remote-manifest.ts'

export interface KustomizeOptions {
  readonly unrestricted?: boolean
  /** Keeps the order of the input, as `-k` does. */
  readonly keepOrder?: boolean
  /** The output for warnings. */
  readonly output?: Pick<ProgramContext, 'stderr' | 'clock'>
}

/** Throws KubectlError. */
export async function kustomizeText(path: string, cwd: string, options: KustomizeOptions = {}): Promise<string> {
  const { unrestricted = false, keepOrder = true, output } = options
  const warn = (text: string): void => void output?.stderr.write(`${text}\n`)
  const log = (text: string): void => void output?.stderr.write(logLine('I', output.clock.now(), 'log.go:244', text))
  const folder = isRepository(path) ? path : resolve(cwd, path)
  return buildKustomization(folder, { unrestricted, keepOrder, warn, log, fetch: readRemote }).catch(
    (error: unknown) => {
      throw new KubectlError((error as Error).message, { cause: error })
    },
  )
}
