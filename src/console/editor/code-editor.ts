/** A CodeMirror editor for YAML with completion, hover text and marked problems. */
import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import {
  codeFolding,
  foldEffect,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from '@codemirror/language'
import { type Diagnostic, linter, lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { EditorState, type Extension } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  hoverTooltip,
  keymap,
  lineNumbers,
  type Tooltip,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'

import type { TextChange } from './merge-lines.ts'
import { describeAt, type KindSchema, suggestionsAt } from './suggest.ts'
import type { Problem } from './yaml-text.ts'

export interface CodeEditorOptions {
  readonly parent: HTMLElement
  readonly text: string
  readonly label: string
  readonly isReadOnly: boolean
  readonly onChange?: (text: string) => void
  /** The schema of the kind at an offset of the text, if it is known. */
  readonly schemaAt?: (text: string, offset: number) => KindSchema | undefined
  /** The problems of a text; called after a pause in typing. */
  readonly check?: (text: string) => readonly Problem[]
}

export interface CodeEditor {
  text(): string
  setText(text: string): void
  change(changes: readonly TextChange[]): void
  mark(problems: readonly Problem[]): void
  /** Folds the lines below a line with this text. */
  fold(line: string): void
  destroy(): void
}

export function createCodeEditor(options: CodeEditorOptions): CodeEditor {
  const { parent, text, label, isReadOnly, onChange, schemaAt, check } = options
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        ...yamlExtensions(label, isReadOnly),
        ...(schemaAt === undefined ? [] : schemaExtensions(schemaAt)),
        ...(check === undefined
          ? []
          : [linter(({ state }) => diagnosticsOf(check(state.doc.toString()), state.doc.length))]),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) onChange?.(state.doc.toString())
        }),
      ],
    }),
  })
  return {
    text: () => view.state.doc.toString(),
    setText: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    change: (changes) => view.dispatch({ changes: [...changes] }),
    mark: (problems) => view.dispatch(setDiagnostics(view.state, diagnosticsOf(problems, view.state.doc.length))),
    fold: (line) => fold(view, line),
    destroy: () => view.destroy(),
  }
}

/** Everything but completion: the panes of a comparison have it too. */
export function yamlExtensions(label: string, isReadOnly: boolean): readonly Extension[] {
  return [
    EditorView.cspNonce.of(document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content ?? ''),
    EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false', ...(isReadOnly && { tabindex: '0' }) }),
    EditorState.readOnly.of(isReadOnly),
    EditorView.editable.of(!isReadOnly),
    indentUnit.of('  '),
    yaml(),
    lineNumbers(),
    codeFolding(),
    foldGutter(),
    history(),
    drawSelection(),
    // Control and bidirectional characters would change how the text around them reads.
    highlightSpecialChars(),
    indentOnInput(),
    highlightSelectionMatches(),
    ...(isReadOnly ? [] : [highlightActiveLine(), lintGutter()]),
    syntaxHighlighting(HIGHLIGHT),
    THEME,
    keymap.of([
      ...completionKeymap,
      ...lintKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...foldKeymap,
      ...defaultKeymap,
      ...(isReadOnly ? [] : [indentWithTab]),
    ]),
  ]
}

function schemaExtensions(schemaAt: NonNullable<CodeEditorOptions['schemaAt']>): readonly Extension[] {
  const complete = ({ state, pos, explicit }: CompletionContext): CompletionResult | null => {
    const text = state.doc.toString()
    const schema = schemaAt(text, pos)
    if (schema === undefined) return null
    const { from, suggestions } = suggestionsAt(schema, text, pos)
    if (!explicit && from === pos) return null
    const isNamed = /^\s*:/.test(state.sliceDoc(pos, state.doc.lineAt(pos).to))
    return {
      from,
      options: suggestions.map(({ label, detail, info, insert }) => ({
        label,
        detail,
        info,
        // The line has the colon already when the name of a field is corrected.
        apply: isNamed ? insert.replace(/: *$/, '') : insert,
      })),
      validFor: /^[\w-]*$/,
    }
  }
  const hover = (view: EditorView, pos: number): Tooltip | null => {
    const text = view.state.doc.toString()
    const schema = schemaAt(text, pos)
    const found = schema && describeAt(schema, text, pos)
    return found === undefined ? null : { pos, above: true, create: () => ({ dom: hoverElement(found) }) }
  }
  return [autocompletion({ override: [complete], icons: false }), hoverTooltip(hover)]
}

function hoverElement({ title, text }: { readonly title: string; readonly text: string }): HTMLElement {
  const box = document.createElement('div')
  box.className = 'editor-hover'
  const head = box.appendChild(document.createElement('strong'))
  head.textContent = title
  const body = box.appendChild(document.createElement('p'))
  body.textContent = text
  return box
}

function diagnosticsOf(problems: readonly Problem[], length: number): Diagnostic[] {
  return problems.map(({ message, from, to }) => ({
    from: Math.min(from, length),
    to: Math.min(Math.max(to, from), length),
    severity: 'error' as const,
    message,
  }))
}

function fold(view: EditorView, wanted: string): void {
  const { doc } = view.state
  for (let number = 1; number <= doc.lines; number++) {
    const line = doc.line(number)
    if (line.text !== wanted) continue
    const indent = wanted.search(/\S/)
    let last = number
    while (last < doc.lines && isInside(doc.line(last + 1).text, indent)) last++
    if (last > number) view.dispatch({ effects: foldEffect.of({ from: line.to, to: doc.line(last).to }) })
    return
  }
}

function isInside(text: string, indent: number): boolean {
  const own = text.search(/\S/)
  return own < 0 || own > indent || (own === indent && text[own] === '-')
}

const HIGHLIGHT = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--text)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--good)' },
  { tag: [tags.comment, tags.lineComment], color: 'var(--muted)', fontStyle: 'italic' },
  { tag: [tags.meta, tags.separator, tags.punctuation], color: 'var(--muted)' },
])

const THEME = EditorView.theme({
  '&': { backgroundColor: 'var(--ground)', color: 'var(--text)', fontSize: '13px' },
  '.cm-content': { fontFamily: 'var(--mono)', caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--panel)', color: 'var(--muted)', borderRight: '1px solid var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--panel)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--accent-ground) !important',
  },
  '.cm-tooltip, .cm-panels': {
    backgroundColor: 'var(--raised)',
    color: 'var(--text)',
    border: '1px solid var(--line-strong)',
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--on-accent)' },
  '.cm-completionDetail': { color: 'inherit' },
  '.cm-foldPlaceholder': { backgroundColor: 'var(--panel)', color: 'var(--muted)', borderColor: 'var(--line)' },
  '.cm-changedText': { background: 'none !important', textDecoration: 'underline' },
  '&.cm-merge-a .cm-changedLine': { backgroundColor: 'var(--bad-ground)' },
  '&.cm-merge-b .cm-changedLine': { backgroundColor: 'var(--good-ground)' },
  '.cm-collapsedLines': { background: 'var(--panel)', color: 'var(--muted)' },
  '.cm-collapsedLines:before, .cm-collapsedLines:after': { content: 'none' },
  '.cm-textfield, .cm-button': { backgroundColor: 'var(--raised)', backgroundImage: 'none', color: 'var(--text)' },
})
