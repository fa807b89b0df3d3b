/** Compares live object, edited text and the result of the dry run, two at a time, side by side. */
import { MergeView } from '@codemirror/merge'
import type { VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import { yamlExtensions } from './code-editor.ts'

export interface ComparisonProps {
  readonly live: string
  readonly mine: string
  /** What the server would store. */
  readonly result: string
}

const SIDES = {
  'live-result': ['Live', 'Result of the dry run'],
  'live-mine': ['Live', 'Your text'],
  'mine-result': ['Your text', 'Result of the dry run'],
} as const

type Sides = keyof typeof SIDES

export function Comparison(texts: ComparisonProps): VNode {
  const [sides, setSides] = useState<Sides>('live-result')
  const box = useRef<HTMLDivElement>(null)
  const [left, right] = SIDES[sides]
  const { live, mine, result } = texts
  useEffect(() => {
    if (box.current === null) return undefined
    const view = new MergeView({
      parent: box.current,
      a: { doc: sides === 'mine-result' ? mine : live, extensions: [...yamlExtensions(left, true)] },
      b: { doc: sides === 'live-mine' ? mine : result, extensions: [...yamlExtensions(right, true)] },
      collapseUnchanged: { margin: 3, minSize: 6 },
      gutter: true,
    })
    return () => view.destroy()
  }, [sides, live, mine, result])
  return (
    <section class="comparison" aria-label="Comparison">
      <div class="comparison-head">
        <select
          aria-label="Compare"
          value={sides}
          onChange={({ currentTarget }) => setSides(currentTarget.value as Sides)}
        >
          {Object.entries(SIDES).map(([name, [a, b]]) => (
            <option key={name} value={name}>{`${a} → ${b}`}</option>
          ))}
        </select>
      </div>
      <div ref={box} />
    </section>
  )
}
