/** A dialog over the page. It takes the focus, and Escape closes it. */
import type { ComponentChildren, VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

export interface DialogProps {
  readonly title: string
  readonly close: () => void
  readonly children: ComponentChildren
}

export function Dialog({ title, close, children }: DialogProps): VNode {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    element.current?.showModal()
  }, [])
  return (
    <dialog ref={element} aria-label={title} onClose={close}>
      <h2>{title}</h2>
      {children}
    </dialog>
  )
}
