/** Two YAML texts side by side, with their differences marked. */
import { MergeView } from '@codemirror/merge'
import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

import { yamlExtensions } from './code-editor.ts'

interface TitledText {
  readonly title: string
  readonly text: string
}

export interface TextDifferenceProps {
  readonly left: TitledText
  readonly right: TitledText
}

export function TextDifference({ left, right }: TextDifferenceProps): VNode {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (box.current === null) return undefined
    const view = new MergeView({
      parent: box.current,
      a: { doc: left.text, extensions: [...yamlExtensions(left.title, true)] },
      b: { doc: right.text, extensions: [...yamlExtensions(right.title, true)] },
      collapseUnchanged: { margin: 3, minSize: 6 },
      gutter: true,
    })
    return () => view.destroy()
  }, [left.title, left.text, right.title, right.text])
  return <div ref={box} />
}
