/**
 * Renders the HTML pages of `/first-login`: a form without scripts. The Content-Security-Policy of the page allows
 * only its style and its form.
 */
import { hash } from 'node:crypto'

import { escapeHtml } from '#component/console/html.ts'
import { PAGE_PATH } from '#component/console/page-plan.ts'
import type { HeaderList } from '#lib/http/exchange.ts'

export interface FirstLoginForm {
  readonly username: string
  readonly code: string
  /** The reason why the password that was sent is refused. */
  readonly problem?: string
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2733; --soft: #5a6b7c; --line: #c5cfd9; --back: #f4f6f8; --card: #fff; --main: #1257a6; --bad: #b3261e }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ecf2; --soft: #a3b1bf; --line: #46535f; --back: #12181e; --card: #1b232b; --main: #7db4f5; --bad: #ff8a80 } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back) }
main { width: 100%; max-width: 26rem; padding: 2rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px }
h1 { margin: 0 0 .5rem; font-size: 1.4rem }
p { margin: 0 0 1rem; color: var(--soft) }
label { display: block; margin: 0 0 1rem; font-weight: 600 }
input { display: block; width: 100%; margin-top: .25rem; padding: .55rem .7rem; font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: 4px }
button { width: 100%; padding: .65rem; font: inherit; font-weight: 600; color: var(--card); background: var(--main); border: 0; border-radius: 4px; cursor: pointer }
input:focus-visible, button:focus-visible { outline: 2px solid var(--main); outline-offset: 2px }
[role=alert] { color: var(--bad) }
code { overflow-wrap: anywhere; color: var(--ink) }
`

/** The address of the page has the code: no referrer, no cache, no frame of another site. */
export const PAGE_HEADERS: HeaderList = Object.entries({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
}).flat()

/** The form posts to `/first-login`. It works without JavaScript. */
export function formPage({ username, code, problem }: FirstLoginForm): string {
  const alert = problem === undefined ? '' : `<p role="alert">${escapeHtml(problem)}</p>`
  return page(
    'Set the password',
    `<p>This is the first log-in to this server. Choose the password of the administrator.</p>${alert}
<form method="post" action="/first-login">
<input type="hidden" name="code" value="${escapeHtml(code)}">
<label>Username<input name="username" value="${escapeHtml(username)}" autocomplete="username" readonly></label>
<label>New password<input name="password" type="password" autocomplete="new-password" minlength="12" required autofocus></label>
<label>Repeat the password<input name="repeated" type="password" autocomplete="new-password" minlength="12" required></label>
<button>Set password and log in</button>
</form>`,
  )
}

/** Leads to the console. A redirect would leave no page for people without it. */
export function donePage(username: string): string {
  return page(
    'The password is set',
    `<p>You are logged in as <code>${escapeHtml(username)}</code>. The link that you used is no longer valid.</p>
<p><a href="${PAGE_PATH}">Open the console</a></p>`,
    `<meta http-equiv="refresh" content="0;url=${PAGE_PATH}">`,
  )
}

export function invalidPage(): string {
  return page(
    'The link is not valid',
    '<p role="alert">It was used, or it has expired.</p><p>As long as the administrator has no password, each start of the server prints a new link.</p>',
  )
}

export function refusedPage(why: string): string {
  return page('The request is refused', `<p role="alert">${escapeHtml(why)}</p>`)
}

/** `head`: further elements. */
function page(title: string, content: string, head = ''): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} - hyperkube</title>
<style>${STYLE}</style>${head}
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`
}
