/** Merges a new live text into an edited one by lines. */
import { Chunk } from '@codemirror/merge'
import { Text } from '@codemirror/state'

export interface TextChange {
  readonly from: number
  readonly to: number
  readonly insert: string
}

/** The changes of the edited text that bring in those of the live one; undefined if both changed the same lines. */
export function mergeLines(base: string, mine: string, live: string): readonly TextChange[] | undefined {
  const [baseText, mineText, liveText] = [base, mine, live].map((text) => Text.of(text.split('\n')))
  if (baseText === undefined || mineText === undefined || liveText === undefined) return undefined
  const edits = Chunk.build(baseText, mineText)
  const changes: TextChange[] = []
  for (const { fromA, toA, fromB, toB } of Chunk.build(baseText, liveText)) {
    if (edits.some((edit) => edit.fromA <= toA && fromA <= edit.toA)) return undefined
    const before = edits.filter((edit) => edit.toA <= fromA).at(-1)
    const shift = before === undefined ? 0 : before.toB - before.toA
    const [from, to] = [fromA + shift, Math.min(mine.length, toA + shift)]
    changes.push({
      from: Math.min(from, mine.length),
      to,
      insert: liveText.sliceString(fromB, Math.min(toB, live.length)),
    })
  }
  return changes
}
