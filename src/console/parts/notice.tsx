/** A message in place of content: nothing there, refused, or failed. */
import type { ComponentChildren, VNode } from 'preact'

export interface NoticeProps {
  readonly title: string
  readonly text: string
  readonly retry?: () => void
  readonly children?: ComponentChildren
}

export function Notice({ title, text, retry, children }: NoticeProps): VNode {
  return (
    <section class="notice" role="status">
      <h2>{title}</h2>
      <p class="notice-text">{text}</p>
      {children}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </section>
  )
}
