/**
 * Allocates user ID ranges to pods with a user namespace. Ranges never overlap; each is stored in the pod's directory
 * in upstream's format.
 */
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { writeFileAtomically } from '#lib/files/atomic-file.ts'

import type { UserRange } from '../pod/sandbox-config.ts'

export const USERS_FILE = 'userns'

/** Default size; a smaller range would not contain the users of common images. */
const IDS_PER_POD = 65_536
const MOST = 2 ** 32

interface Mapping {
  readonly hostId: number
  readonly containerId: number
  readonly length: number
}

/** Returns a function that allocates ranges one at a time, so that no two pods get the same. */
export function createUserRanges(folder: string, length: number = IDS_PER_POD): (uid: string) => Promise<UserRange> {
  let last: Promise<unknown> = Promise.resolve()
  const fileOf = (uid: string): string => join(folder, uid, USERS_FILE)
  const read = async (uid: string): Promise<UserRange | undefined> => {
    const text = await readFile(fileOf(uid), 'utf8').catch(() => '')
    if (text === '') return undefined
    const { uidMappings: [mapping] = [] } = JSON.parse(text) as { uidMappings?: Mapping[] }
    if (mapping === undefined) throw new Error('user namespace: invalid user namespace configuration')
    return { first: mapping.hostId, length: mapping.length }
  }
  const choose = async (uid: string): Promise<UserRange> => {
    const own = await read(uid)
    if (own !== undefined) return own
    const others = await Promise.all((await readdir(folder).catch(() => [])).map(read))
    const taken = others.filter((range) => range !== undefined)
    // The first range belongs to the host.
    let first = length
    while (taken.some((range) => first < range.first + range.length && range.first < first + length)) first += length
    if (first + length > MOST) throw new Error('could not find an empty slot to allocate a user namespace')
    const mapping: Mapping = { hostId: first, containerId: 0, length }
    await mkdir(join(folder, uid), { recursive: true, mode: 0o750 })
    const content = JSON.stringify({ uidMappings: [mapping], gidMappings: [mapping] })
    await writeFileAtomically(fileOf(uid), content, { mode: 0o600 })
    return { first, length }
  }
  return (uid) => {
    const chosen = last.then(() => choose(uid))
    last = chosen.catch(() => undefined)
    return chosen
  }
}
