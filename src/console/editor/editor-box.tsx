/** An editor in the page: makes it once, and gives it to its parent. */
import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

import { type CodeEditor, type CodeEditorOptions, createCodeEditor } from './code-editor.ts'

export interface EditorBoxProps extends Omit<CodeEditorOptions, 'parent'> {
  readonly onReady?: (editor: CodeEditor) => void
}

/** Other props than those of the first drawing are not used: give it another key. */
export function EditorBox({ onReady, ...options }: EditorBoxProps): VNode {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (box.current === null) return undefined
    const editor = createCodeEditor({ parent: box.current, ...options })
    onReady?.(editor)
    return () => editor.destroy()
  }, [])
  return <div class="editor" ref={box} />
}
