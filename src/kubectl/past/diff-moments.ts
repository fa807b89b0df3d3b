/** `kubectl diff --from MOMENT [--to MOMENT]`: shows the difference between the objects of two moments. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { ServedKind } from '#client/discovery.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'

import { type Invocation, usageError } from '../command.ts'
import { compare, fileName } from '../diff/external-diff.ts'
import { KubectlError } from '../errors.ts'
import type { Session } from '../session/session.ts'
import { absoluteMoment } from './absolute-moment.ts'
import { differences, type ObjectPair, pairObjects } from './differences.ts'
import { readObjects } from './moment-objects.ts'
import { pairKinds, userKinds } from './user-kinds.ts'

export interface DiffMomentsOptions {
  readonly from: string
  /** Empty: now. */
  readonly to: string
  readonly allNamespaces: boolean
  readonly status: boolean
}

/** The exit code: 1 if there is a difference. */
export async function diffMoments(invocation: Invocation, options: DiffMomentsOptions): Promise<number> {
  const { session, clock } = invocation
  const nowMs = clock.now()
  const { type, name } = selectionOf(invocation)
  if (name !== undefined && options.allNamespaces) {
    throw new KubectlError('a resource cannot be retrieved by name across all namespaces')
  }
  const before = session.at(absoluteMoment('--from', options.from, nowMs).text)
  const after = options.to === '' ? session : session.at(absoluteMoment('--to', options.to, nowMs).text)
  const { namespace } = await session.namespace()
  const pairs = await kindsOf({ before, after, type, namespaced: !options.allNamespaces })
  const read = (from: Session, side: 'before' | 'after'): ReturnType<typeof readObjects> =>
    readObjects(from, {
      kinds: pairs.flatMap((pair) => pair[side] ?? []),
      namespace: options.allNamespaces ? '' : namespace,
      skipsForbidden: type === '',
      ...(name !== undefined && { name }),
    })
  const [earlier, later] = await Promise.all([read(before, 'before'), read(after, 'after')])
  if (name !== undefined && earlier.length + later.length === 0) {
    throw new KubectlError(`"${type}/${name}" did not exist at either moment`)
  }
  return compareObjects(invocation, differences(pairObjects(earlier, later), options))
}

interface DiffSelection {
  /** Empty: all that users write. */
  readonly type: string
  readonly name: string | undefined
}

/** `TYPE`, `TYPE,TYPE`, `TYPE NAME` or `TYPE/NAME`. */
function selectionOf(invocation: Invocation): DiffSelection {
  const [first = '', second, ...others] = invocation.args
  const [type = '', ...names] = first.split('/')
  if (names.length > 1 || others.length > 0 || (names.length > 0 && second !== undefined)) {
    throw usageError(invocation, 'Give one TYPE, TYPE NAME or TYPE/NAME')
  }
  return { type, name: names[0] ?? second }
}

interface KindQuestion {
  readonly before: Session
  readonly after: Session
  readonly type: string
  readonly namespaced: boolean
}

/** Kinds of either moment: a definition may have been created or deleted between them. */
async function kindsOf({ before, after, type, namespaced }: KindQuestion): Promise<ReturnType<typeof pairKinds>> {
  const [earlier, later] = await Promise.all([before.mapper(), after.mapper()])
  const [then, now] = [await earlier.kinds(), await later.kinds()]
  if (type === '') return pairKinds([...userKinds(now, { namespaced }), ...userKinds(then, { namespaced })], then, now)
  const wanted: ServedKind[] = []
  for (const each of type.split(',')) wanted.push((await later.find(each)) ?? (await earlier.named(each)))
  return pairKinds(wanted, then, now)
}

async function compareObjects(invocation: Invocation, pairs: readonly ObjectPair[]): Promise<number> {
  if (pairs.length === 0) return 0
  const folder = invocation.env['TMPDIR'] || tmpdir()
  const [from, to] = [await mkdtemp(join(folder, 'FROM-')), await mkdtemp(join(folder, 'TO-'))]
  try {
    for (const { kind, before, after } of pairs) {
      if (before !== undefined) await writeFile(join(from, fileName(kind, before)), stringifyYaml(before))
      if (after !== undefined) await writeFile(join(to, fileName(kind, after)), stringifyYaml(after))
    }
    return await compare(invocation, from, to)
  } finally {
    await Promise.all([from, to].map((each) => rm(each, { recursive: true, force: true })))
  }
}
