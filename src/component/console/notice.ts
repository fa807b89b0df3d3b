/** Plain pages without scripts: the console was not built, or a log-in link is not valid. */
import type { Exchange, HeaderList } from '#lib/http/exchange.ts'

import { escapeHtml } from './html.ts'
import { noticeHeaders } from './page-headers.ts'

export interface Notice {
  readonly title: string
  readonly paragraphs: readonly string[]
  /** A command to copy. */
  readonly command?: string
}

export const NOT_BUILT: Notice = {
  title: 'The console was not built',
  paragraphs: ['This checkout has no built page. Build it, then reload:'],
  command: 'npm run console',
}

const STYLE = `
:root { color-scheme: light dark }
body { margin: 0 auto; max-width: 34rem; padding: 4rem 1rem; font: 1rem/1.5 system-ui, sans-serif }
h1 { font-size: 1.4rem }
code { display: block; padding: .6rem .8rem; border: 1px solid; border-radius: 4px; overflow-wrap: anywhere }
`

export function sendNotice(exchange: Exchange, status: number, notice: Notice, headers: HeaderList = []): number {
  exchange.respond(status, [...noticeHeaders(STYLE), ...headers], Buffer.from(noticePage(notice)))
  return status
}

function noticePage({ title, paragraphs, command }: Notice): string {
  const texts = paragraphs.map((text) => `<p>${escapeHtml(text)}</p>`).join('\n')
  const code = command === undefined ? '' : `<code>${escapeHtml(command)}</code>`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} - hyperkube</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
${texts}
${code}
</main>
</body>
</html>
`
}
