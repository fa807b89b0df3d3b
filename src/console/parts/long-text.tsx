/** Text of any length: long ones are folded, so that a value of a megabyte costs what its first line costs. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { CopyButton } from './copy-button.tsx'

const FOLDED = 240
/** Even unfolded, a browser lays out no more than this. The button copies everything. */
const UNFOLDED = 20_000

export interface LongTextProps {
  readonly text: string
  readonly name: string
}

export function LongText({ text, name }: LongTextProps): VNode {
  const [isOpen, setIsOpen] = useState(false)
  if (text.length <= FOLDED) return <bdi class="text">{text}</bdi>
  const shown = text.slice(0, isOpen ? UNFOLDED : FOLDED)
  return (
    <span class="long-text">
      <bdi class="text">{shown}</bdi>
      {shown.length < text.length && '… '}
      <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        {isOpen ? 'Less' : `Show more of ${text.length.toLocaleString('en')} characters`}
      </button>
      {isOpen && <CopyButton text={text} name={name} />}
    </span>
  )
}
