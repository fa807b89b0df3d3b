/** A terminal (xterm) on an element, connected to a container. The page loads it when a shell is opened. */
import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'

import '@xterm/xterm/css/xterm.css'

import { decodeMessage, encodeInput, encodeSize, PROTOCOLS } from './streams.ts'

export interface TerminalOptions {
  /** Path and query of exec or attach. */
  readonly path: string
  readonly onEnd: (message: string) => void
  readonly onOpen: () => void
}

/** Returns a function that ends the connection. */
export function openTerminal(element: HTMLElement, { path, onEnd, onOpen }: TerminalOptions): () => void {
  const style = getComputedStyle(document.documentElement)
  const terminal = new Terminal({
    fontFamily: style.getPropertyValue('--mono'),
    fontSize: 13,
    scrollback: 10_000,
    screenReaderMode: true,
    theme: { background: '#0f1318', foreground: '#e4e8ee', cursor: '#6cb1ff', selectionBackground: '#2f5f94' },
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  withStyleNonce(() => terminal.open(element))
  fit.fit()
  const socket = new WebSocket(`${globalThis.location.origin.replace(/^http/, 'ws')}${path}`, [...PROTOCOLS])
  socket.binaryType = 'arraybuffer'
  let hasEnded = false
  const end = (message: string): void => {
    if (!hasEnded) onEnd(message)
    hasEnded = true
  }
  const send = (bytes: Uint8Array<ArrayBuffer>): void => {
    if (socket.readyState === WebSocket.OPEN) socket.send(bytes)
  }
  socket.addEventListener('open', () => {
    onOpen()
    send(encodeSize(terminal.cols, terminal.rows))
    terminal.focus()
  })
  socket.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer>) => {
    const message = decodeMessage(data)
    if (message?.type === 'output') terminal.write(message.bytes)
    else if (message?.type === 'end') end(message.message)
  })
  socket.addEventListener('close', () => end('The connection was lost'))
  const encoder = new TextEncoder()
  terminal.onData((text) => send(encodeInput(encoder.encode(text))))
  terminal.onResize(({ cols, rows }) => send(encodeSize(cols, rows)))
  const observer = new ResizeObserver(() => fit.fit())
  observer.observe(element)
  return () => {
    hasEnded = true
    observer.disconnect()
    socket.close()
    terminal.dispose()
  }
}

/** Style elements that xterm creates get the nonce that the Content-Security-Policy of the page permits. */
function withStyleNonce(work: () => void): void {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name=style-nonce]')?.content ?? ''
  const create = document.createElement.bind(document)
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    const element = create(name, options)
    if (name === 'style') element.nonce = nonce
    return element
  }
  try {
    work()
  } finally {
    document.createElement = create
  }
}
