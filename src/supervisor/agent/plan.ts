/**
 * Parses the plan that a server sends to a node: certificates, files and supervisor settings. Unknown fields are
 * ignored; invalid ones are refused.
 */
import type { Layout } from '../layout.ts'
import { readSettings } from '../settings-file.ts'
import type { NodeSettings } from '../settings.ts'

export interface NodePlan {
  /** By plain name; they go to the certificate folder. */
  readonly certificates: Readonly<Record<string, string>>
  readonly files: readonly PlannedFile[]
  /** The plan contains only certificates and files. */
  readonly isFilesOnly: boolean
  /** Undefined: no processes run on this node. */
  readonly settings: NodeSettings | undefined
  /** The time until the next request. */
  readonly intervalMs: number
}

export interface PlannedFile {
  readonly path: string
  readonly text: string
}

const INTERVAL_MS = 120_000
const PLAIN_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/
const ABSOLUTE = /^(?:\/|[A-Za-z]:[\\/])/

interface UncheckedPlan {
  readonly certs?: unknown
  readonly files?: unknown
  readonly writeCertsOnly?: unknown
  readonly node?: unknown
  readonly agentCheckInterval?: unknown
}

/** Throws an Error for an invalid plan. Unknown fields of newer servers are ignored. */
export function readPlan(document: unknown): NodePlan {
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw new Error('it is not an object')
  const { certs = {}, files = [], writeCertsOnly = false, node, agentCheckInterval } = document as UncheckedPlan
  const seconds = typeof agentCheckInterval === 'number' && agentCheckInterval > 0 ? agentCheckInterval : undefined
  return {
    certificates: readCertificates(certs),
    files: readFiles(files),
    isFilesOnly: writeCertsOnly === true,
    settings: node === undefined || node === null ? undefined : readSettings(node),
    intervalMs: seconds === undefined ? INTERVAL_MS : seconds * 1000,
  }
}

function readCertificates(given: unknown): Record<string, string> {
  if (typeof given !== 'object' || given === null) throw new Error('"certs" holds no certificates by name')
  for (const [name, text] of Object.entries(given)) {
    if (!PLAIN_NAME.test(name)) throw new Error(`"${name}" is not a certificate name`)
    if (typeof text !== 'string') throw new Error(`the certificate "${name}" is not a text`)
  }
  return given as Record<string, string>
}

function readFiles(given: unknown): PlannedFile[] {
  if (!Array.isArray(given)) throw new Error('"files" is not a list')
  return given.map((item: unknown) => {
    const { name, contents } = (item ?? {}) as { readonly name?: unknown; readonly contents?: unknown }
    if (typeof name !== 'string' || !ABSOLUTE.test(name) || name.split(/[\\/]/).includes('..'))
      throw new Error(`${JSON.stringify(name)} is not an allowed path`)
    if (typeof contents !== 'string') throw new Error(`the file "${name}" has no contents`)
    return { path: name, text: Buffer.from(contents, 'base64').toString('utf8') }
  })
}

/** All files to write with their paths. Certificates come first, because files may refer to them. */
export function planFiles({ certificates, files }: NodePlan, layout: Layout): PlannedFile[] {
  const separator = layout.certificates.includes('\\') ? '\\' : '/'
  return [
    ...Object.entries(certificates).map(([name, text]) => ({
      path: `${layout.certificates}${separator}${name}`,
      text,
    })),
    ...files.map(({ path, text }) => ({ path: layout.planPath(path), text })),
  ]
}
