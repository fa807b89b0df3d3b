/** What runs the pods of a cluster, written down beside its state: a cluster that is started again goes on as it was. */
import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import { contains, parseCidr, parseIp } from '#lib/cidr.ts'

import type { NodeRuntime } from './runtime-choice.ts'

export interface RuntimeFile {
  readonly runtime: NodeRuntime
  /** Addresses of pods; chosen once, because pods that run keep theirs. */
  readonly podCidr: string
}

export const RUNTIME_FILE = 'runtime.json'

/** Undefined: nothing was written yet. */
export async function readRuntimeFile(dataDir: string): Promise<RuntimeFile | undefined> {
  try {
    return JSON.parse(await readFile(join(dataDir, RUNTIME_FILE), 'utf8')) as RuntimeFile
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export function writeRuntimeFile(dataDir: string, file: RuntimeFile): Promise<void> {
  return writeFileAtomically(join(dataDir, RUNTIME_FILE), `${JSON.stringify(file)}\n`, { mode: 0o600 })
}

/** What kubeadm's users know, or the next that no interface of this machine is in: other clusters have theirs. */
export function freePodCidr(own: readonly string[] = ownAddresses()): string {
  const taken = own.flatMap((address) => parseIp(address) ?? [])
  for (let second = FIRST; second < 256; second++) {
    const text = `10.${second}.0.0/16`
    const block = parseCidr(text)
    if (block !== undefined && !taken.some((address) => contains(block, address))) return text
  }
  return `10.${FIRST}.0.0/16`
}

const FIRST = 244

function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
}
