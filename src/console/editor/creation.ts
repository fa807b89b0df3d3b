/** Sends the objects of a text of YAML, in the order of the text. */
import type { KubeObject } from '#meta/object.ts'

import { clusterPath, type Kind, listPath, objectPath } from '../api/kinds.ts'
import { RequestError } from '../api/request.ts'
import { type Conflict, conflictsOf, problemsOf, sendEdit, sendNew, type Sent } from './send-edit.ts'
import type { ParsedDocument, Problem } from './yaml-text.ts'

export interface Created {
  /** `Deployment shop/web`. */
  readonly title: string
  readonly kind: Kind | undefined
  readonly sent: Sent | undefined
  /** The server's refusal. */
  readonly message: string | undefined
  readonly conflicts: readonly Conflict[]
  readonly problems: readonly Problem[]
}

export interface CreateOptions {
  readonly cluster: string
  readonly kinds: readonly Kind[]
  /** For objects that name none. */
  readonly namespace: string
  readonly isDryRun: boolean
  readonly isForced: boolean
}

/** Every object is tried, also after a refusal. */
export async function createAll(
  documents: readonly ParsedDocument[],
  options: CreateOptions,
): Promise<readonly Created[]> {
  const created: Created[] = []
  for (const document of documents) created.push(await createOne(document, options))
  return created
}

async function createOne(document: ParsedDocument, options: CreateOptions): Promise<Created> {
  const { object } = document
  if (object === undefined) return refused('A document', document.problems[0]?.message ?? 'It is not YAML', document)
  const { apiVersion = '', kind: kindName = '' } = object
  const kind = kindOf(options.kinds, apiVersion, kindName)
  const target = kind?.isNamespaced === true ? inNamespace(object, options.namespace) : object
  const title = titleOf(target)
  if (kind === undefined)
    return refused(title, `The cluster serves no kind "${kindName}" in version "${apiVersion}"`, document)
  try {
    return { title, kind, sent: await sendOne(target, kind, options), message: undefined, conflicts: [], problems: [] }
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    const problems = problemsOf(error, document)
    return { title, kind, sent: undefined, message: error.message, conflicts: conflictsOf(error.status), problems }
  }
}

function refused(title: string, message: string, document: ParsedDocument): Created {
  return {
    title,
    kind: undefined,
    sent: undefined,
    message,
    conflicts: [],
    problems: [{ message, ...document.rangeOf(['kind']) }],
  }
}

function sendOne(object: KubeObject, kind: Kind, { cluster, isDryRun, isForced }: CreateOptions): Promise<Sent> {
  const { name = '', namespace = '' } = object.metadata
  if (name === '') return sendNew(clusterPath(cluster, listPath(kind, namespace)), object, { isDryRun })
  const path = clusterPath(cluster, objectPath(kind, { namespace, name }))
  return sendEdit(path, { type: 'apply', body: object }, { isDryRun, isForced })
}

/** The kind of an object at the version that the object names. */
export function kindOf(kinds: readonly Kind[], apiVersion: string, kindName: string): Kind | undefined {
  const [version = '', group = ''] = apiVersion.split('/').reverse()
  const found = kinds.find((one) => one.kind === kindName && one.group === group)
  return found && { ...found, version }
}

function inNamespace(object: KubeObject, namespace: string): KubeObject {
  const { metadata } = object
  return {
    ...object,
    metadata: { ...metadata, namespace: metadata.namespace ?? (namespace === '' ? 'default' : namespace) },
  }
}

function titleOf({ kind = 'Object', metadata }: KubeObject): string {
  const { namespace = '', name = metadata.generateName ?? '' } = metadata
  return `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`
}
