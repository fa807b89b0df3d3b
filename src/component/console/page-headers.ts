/** The security headers of the web console. Its pages load nothing of other sites and run no inline scripts. */
import { hash } from 'node:crypto'

import type { HeaderList } from '#lib/http/exchange.ts'

/** Of all responses of the console. */
export const SAFE_HEADERS: HeaderList = Object.entries({
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
}).flat()

/** Features of browsers that the page does not use. */
const OFF = ['camera', 'microphone', 'geolocation', 'usb', 'serial', 'payment', 'display-capture']

/** Of index.html. `nonce` is new for each response: the page's terminal adds a style element with it. */
export function pageHeaders(nonce: string): HeaderList {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types hyperkube',
  ]
  return [
    ...SAFE_HEADERS,
    'Content-Security-Policy',
    policy.join('; '),
    'Permissions-Policy',
    OFF.map((feature) => `${feature}=()`).join(', '),
  ]
}

/** Of a page without scripts, whose only style is this one. */
export function noticeHeaders(style: string): HeaderList {
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${hash('sha256', style, 'base64')}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  return [
    ...SAFE_HEADERS,
    'Content-Security-Policy',
    policy.join('; '),
    'Content-Type',
    'text/html; charset=utf-8',
    'Cache-Control',
    'no-store',
  ]
}
