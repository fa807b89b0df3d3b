/**
 * Reads the revision of an etcd snapshot from the bbolt file: the last entry of the bucket `key`. It reads only the
 * pages on the path to that entry.
 */
import type { FileHandle } from 'node:fs/promises'

import { StorageError, type Revision } from '../backend.ts'

const MAGIC = 0xed0cdaed
const PAGE_HEAD_BYTES = 16
const ELEMENT_BYTES = 16
const FLAG = { branch: 1, leaf: 2 } as const
/** A small bucket has its only page inline, behind its header. */
const BUCKET_HEAD_BYTES = 16
/** Deeper than any tree of a file that fits a disk. */
const MAX_DEPTH = 64

interface Database {
  readonly handle: FileHandle
  readonly pageSize: number
}

interface Element {
  readonly key: Buffer
  readonly value: Buffer
  /** Of a branch: the page below. */
  readonly child: number
}

interface Page {
  readonly isLeaf: boolean
  readonly elements: readonly Element[]
}

/** Fails with `corrupt` when the file is not a snapshot of etcd. */
export async function readSnapshotRevision(handle: FileHandle): Promise<Revision> {
  try {
    const { database, root } = await openDatabase(handle)
    const keys = await findBucket(database, root, 'key')
    const meta = await findBucket(database, root, 'meta')
    // Compaction at the newest change, if that is a deletion, leaves no trace of it among the keys.
    const found = [keys && (await last(database, keys))?.key]
    for (const name of ['scheduledCompactRev', 'finishedCompactRev']) {
      found.push(meta && (await find(database, meta, name))?.value)
    }
    return Math.max(1, ...found.map((bytes) => (bytes && bytes.length >= 8 ? Number(bytes.readBigUInt64BE(0)) : 0)))
  } catch (cause) {
    if (cause instanceof StorageError) throw cause
    throw notASnapshot('it cannot be read', cause)
  }
}

function notASnapshot(why: string, cause?: unknown): StorageError {
  return new StorageError('corrupt', `The file is not a snapshot of etcd: ${why}`, { cause })
}

async function openDatabase(handle: FileHandle): Promise<{ database: Database; root: number }> {
  const first = await readAt(handle, 0, PAGE_HEAD_BYTES + 64)
  const pageSize = first.readUInt32LE(PAGE_HEAD_BYTES + 8)
  const metas = [first, await readAt(handle, pageSize, PAGE_HEAD_BYTES + 64)]
    .map((page) => page.subarray(PAGE_HEAD_BYTES))
    .filter((meta) => meta.readUInt32LE(0) === MAGIC)
    .sort((a, b) => Number(b.readBigUInt64LE(48) - a.readBigUInt64LE(48)))
  const [newest] = metas
  if (newest === undefined) throw notASnapshot('its first pages are something else')
  return { database: { handle, pageSize }, root: Number(newest.readBigUInt64LE(16)) }
}

async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position)
  if (bytesRead < length) throw notASnapshot('it is cut off')
  return buffer
}

async function readPage({ handle, pageSize }: Database, number: number): Promise<Page> {
  const head = await readAt(handle, number * pageSize, PAGE_HEAD_BYTES)
  const overflow = head.readUInt32LE(12)
  return parsePage(await readAt(handle, number * pageSize, (overflow + 1) * pageSize))
}

function parsePage(page: Buffer): Page {
  const flags = page.readUInt16LE(8)
  if (flags !== FLAG.branch && flags !== FLAG.leaf) throw notASnapshot(`a page has flags ${flags}`)
  const isLeaf = flags === FLAG.leaf
  const elements = Array.from({ length: page.readUInt16LE(10) }, (_, index) => {
    const at = PAGE_HEAD_BYTES + index * ELEMENT_BYTES
    return isLeaf ? leafElement(page, at) : branchElement(page, at)
  })
  return { isLeaf, elements }
}

function leafElement(page: Buffer, at: number): Element {
  const start = at + page.readUInt32LE(at + 4)
  const middle = start + page.readUInt32LE(at + 8)
  return {
    key: page.subarray(start, middle),
    value: page.subarray(middle, middle + page.readUInt32LE(at + 12)),
    child: 0,
  }
}

function branchElement(page: Buffer, at: number): Element {
  const start = at + page.readUInt32LE(at)
  const key = page.subarray(start, start + page.readUInt32LE(at + 4))
  return { key, value: key, child: Number(page.readBigUInt64LE(at + 8)) }
}

/** The root of a bucket: a page, or the inline page of its entry. */
type Bucket = number | Page

async function findBucket(database: Database, root: number, name: string): Promise<Bucket | undefined> {
  const entry = await find(database, root, name)
  if (entry === undefined) return undefined
  const number = Number(entry.value.readBigUInt64LE(0))
  return number === 0 ? parsePage(entry.value.subarray(BUCKET_HEAD_BYTES)) : number
}

async function find(database: Database, bucket: Bucket, name: string): Promise<Element | undefined> {
  const wanted = Buffer.from(name)
  const leaf = await descend(database, bucket, (elements) =>
    elements.findLast(({ key }) => Buffer.compare(key, wanted) <= 0),
  )
  return leaf.elements.find(({ key }) => key.equals(wanted))
}

async function last(database: Database, bucket: Bucket): Promise<Element | undefined> {
  const leaf = await descend(database, bucket, (elements) => elements.at(-1))
  return leaf.elements.at(-1)
}

async function descend(
  database: Database,
  bucket: Bucket,
  choose: (elements: readonly Element[]) => Element | undefined,
): Promise<Page> {
  let page = typeof bucket === 'number' ? await readPage(database, bucket) : bucket
  for (let depth = 0; !page.isLeaf; depth++) {
    const next = choose(page.elements) ?? page.elements[0]
    if (next === undefined || depth > MAX_DEPTH) throw notASnapshot('its tree has no leaves')
    page = await readPage(database, next.child)
  }
  return page
}
