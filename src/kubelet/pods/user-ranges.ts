/**
 * Users of the machine for pods that have users of their own: a range for each, which no other pod and nobody else has. It is in the
 * folder of the pod, in the form of upstream's, so that the next kubelet finds it, and is free again when that is removed.
 */
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'

export interface UserRange {
  /** Who is root in the pod. */
  readonly first: number
  readonly length: number
}

export const USERS_FILE = 'userns'

/** What a pod has by default; smaller ones would not hold the users of usual images. */
const IDS_PER_POD = 65_536
const MOST = 2 ** 32

interface Mapping {
  readonly hostId: number
  readonly containerId: number
  readonly length: number
}

/** Returns who says which range a pod has, by its uid; one after the other, so that no two get the same. */
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
    // The first is the machine's own.
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
